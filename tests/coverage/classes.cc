// SPDX-License-Identifier: GPL-2.0-or-later
/* Functions that the compiler makes: constructors, assignments, destructors, initialization. */
#include <iostream>

struct Shape {
	virtual ~Shape()
	{
	}
	virtual int area(int x)
	{
		return x;
	}
	int height = 3;
};

struct Square : Shape {
	int area(int x) override
	{
		return x * x + height;
	}
};

static Square global;

int main()
{
	Square square, copy = square;
	auto twice = [](int n) {
		return n * 2;
	};
	int sum = 0;

	for (int i = 0; i < 5; i++) {
		Square other;

		other = copy;
		sum += twice(i) + other.area(i);
	}
	std::cout << sum << "\n";
	return global.height - 3;
}
