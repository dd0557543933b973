// SPDX-License-Identifier: GPL-2.0-or-later
/* Odd names: templates, operators, lambdas. The test gives the file an odd name, too. */
#include <map>
#include <string>

template <typename Key, typename Value> struct Pair {
	Key key;
	Value value;
	bool operator<(const Pair<Key, Value> &other) const
	{
		return key < other.key;
	}
};

template <typename T> static T larger(const T &a, const T &b)
{
	return a < b ? b : a;
}

int main()
{
	std::map<int, std::string> names;
	int calls = 0;
	auto name = [&](int n) {
		calls++;
		names[n] = "n";
	};
	Pair<int, char> pair = larger(Pair<int, char>{ 1, 'a' }, Pair<int, char>{ 2, 'b' });

	for (int i = 0; i < 7; i++)
		name(i + pair.key);
	return calls == 7 ? 0 : 1;
}
