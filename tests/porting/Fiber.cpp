// SPDX-License-Identifier: GPL-2.0-or-later
// Lagoon: fibers. They yield, or the PIT makes them.
#include "Lagoon.hpp"

extern "C" void SwitchFiber(void** from, void* to);

namespace lagoon {

namespace {

constexpr uint32_t kFibers = 8, kPage = 4096;

struct Stack {
    uint8_t hole[kPage];  // not mapped, so that an overflow is noticed
    uint8_t bytes[2 * kPage];
};

alignas(kPage) Stack stacks[kFibers];
Fiber fibers[kFibers];  // the first one is idle
Fiber *current = fibers, *turn = fibers;  // turn: the last one that was not urgent
volatile bool sliceIsOver;

}  // namespace

extern "C" [[noreturn]] void FiberStart() {
    asm volatile("sti");
    current->Run();
}

void Fiber::Run() {
    body_(argument_);
    done_ = true;
    for (;;) Yield();
}

Fiber* Fiber::Spawn(const char* name, Body body, uint32_t argument, bool urgent) {
    InterruptGuard guard;
    for (uint32_t i = 1; i < kFibers; i++) {
        Fiber& fiber = fibers[i];
        if (fiber.name_ && !fiber.done_) continue;
        Memory::Unmap(stacks[i].hole);
        void** sp = reinterpret_cast<void**>(stacks[i].bytes + sizeof(stacks[i].bytes));
        *--sp = nullptr;  // nobody called FiberStart
        *--sp = reinterpret_cast<void*>(FiberStart);
        for (int saved = 0; saved < 4; saved++) *--sp = nullptr;
        fiber.name_ = name;
        fiber.body_ = body;
        fiber.argument_ = argument;
        fiber.urgent_ = urgent;
        fiber.sleeps_ = fiber.done_ = false;
        fiber.sp_ = sp;
        return &fiber;
    }
    return nullptr;
}

void Fiber::BecomeIdle() {
    fibers[0].name_ = "idle";
    for (;;) {
        asm volatile("sti; hlt");
        Yield();
    }
}

Fiber* Fiber::Current() { return current; }

Fiber* Fiber::ByNumber(uint32_t number) {
    return number && number <= kFibers && fibers[number - 1].name_ ? &fibers[number - 1] : nullptr;
}

uint32_t Fiber::Number() const { return uint32_t(this - fibers) + 1; }

bool Fiber::IsReady() const {
    return name_ && !done_ && !(sleeps_ && int32_t(pit.Ticks() - wakeTick_) < 0);
}

Fiber* Fiber::Next() {
    for (uint32_t i = 1; i < kFibers; i++)
        if (fibers[i].urgent_ && fibers[i].IsReady()) return &fibers[i];
    for (uint32_t i = 1; i <= kFibers; i++) {
        Fiber& fiber = fibers[(uint32_t(turn - fibers) + i) % kFibers];
        if (&fiber != fibers && fiber.IsReady()) return turn = &fiber;
    }
    return fibers;
}

// With interrupts off.
void Fiber::Switch() {
    Fiber *from = current, *to = Next();
    to->sleeps_ = false;
    if (to == from) return;
    current = to;
    SwitchFiber(&from->sp_, to->sp_);
}

void Fiber::Yield() {
    InterruptGuard guard;
    Switch();
}

void Fiber::Sleep(uint32_t ticks) {
    InterruptGuard guard;
    current->wakeTick_ = pit.Ticks() + ticks;
    current->sleeps_ = true;
    Switch();
}

void Fiber::SleepUntilSlice() { Sleep(Pit::kTicksPerSlice - pit.Ticks() % Pit::kTicksPerSlice); }

void Lock::Take() {
    for (;; Fiber::Yield()) {
        InterruptGuard guard;
        if (taken_) continue;
        taken_ = true;
        return;
    }
}

void Fiber::OnSlice() { sliceIsOver = true; }

// The entry code calls this when the last handler has returned, on the stack of the interrupted fiber.
extern "C" void PreemptFiber() {
    if (!sliceIsOver) return;
    sliceIsOver = false;
    Fiber::Yield();
}

}  // namespace lagoon
