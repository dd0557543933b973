// SPDX-License-Identifier: GPL-2.0-or-later
// Lagoon: a small kernel for 32-bit PCs. It has one CPU, fibers, interrupts on a stack of their own, a shell on COM1,
// and work to do whose amount is known. doc/porting.md adds a profiler to it.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace lagoon {

// ---- Machine.cpp ----

// What the entry code leaves on the interrupted stack.
struct InterruptFrame {
    uint32_t ebp, eip, cs, eflags;

    // Where the stack pointer was: the processor pushed no other words.
    uintptr_t Esp() const { return reinterpret_cast<uintptr_t>(this + 1); }
};

// Interrupts are off as long as one of these exists.
class InterruptGuard {
public:
    InterruptGuard() { asm volatile("pushf; pop %0; cli" : "=r"(flags_) : : "memory"); }
    ~InterruptGuard() { asm volatile("push %0; popf" : : "r"(flags_) : "memory", "cc"); }

private:
    uint32_t flags_;
};

class Device {
public:
    virtual void OnInterrupt(const InterruptFrame& frame) = 0;
};

class SerialPort {
public:
    explicit constexpr SerialPort(uint16_t base) : base_(base) {}
    void Start();
    bool TryPut(uint8_t byte);
    int TryGet();  // -1: nothing has arrived

private:
    uint16_t base_;
};

// The only timer. It began with 100 ticks a second; for samples it has 40 times as many.
class Pit : public Device {
public:
    static constexpr uint32_t kDivisor = 298;          // of 1.193182 MHz: 4 kHz
    static constexpr uint32_t kTickNs = kDivisor * 838;
    static constexpr uint32_t kTicksPerSlice = 40;     // the scheduler's tick

    void Start();
    void OnInterrupt(const InterruptFrame& frame) override;
    uint32_t Ticks() const { return static_cast<uint32_t>(ticks_); }
    uint64_t Nanoseconds();

private:
    volatile uint64_t ticks_;
    uint64_t latest_;
};

// Interrupts 128 times a second, whatever the PIT does.
class Rtc : public Device {
public:
    void Start();
    void OnInterrupt(const InterruptFrame& frame) override;
};

class Memory {
public:
    static void Start();
    static void Unmap(const void* page);
    static bool IsMapped(uintptr_t address);
};

extern SerialPort com1, com2;
extern Pit pit;
extern Rtc rtc;

void StartInterrupts();
[[noreturn]] void PowerOff();
void Print(const char* text);
void Print(uint32_t number);

// ---- Fiber.cpp ----

class Fiber {
public:
    using Body = void (*)(uint32_t argument);

    // An urgent fiber runs before others. Fibers that are not done number their names from 1.
    static Fiber* Spawn(const char* name, Body body, uint32_t argument = 0, bool urgent = false);
    static Fiber* Current();
    static Fiber* ByNumber(uint32_t number);
    static void Yield();
    static void Sleep(uint32_t ticks);
    static void SleepUntilSlice();
    static void OnSlice();  // lets others run, after the interrupt
    static void BecomeIdle();

    uint32_t Number() const;
    const char* Name() const { return name_; }
    bool IsDone() const { return done_; }
    [[noreturn]] void Run();

private:
    static Fiber* Next();
    static void Switch();
    bool IsReady() const;

    const char* name_;
    Body body_;
    uint32_t argument_, wakeTick_;
    bool urgent_, sleeps_;
    volatile bool done_;
    void* sp_;
};

// One fiber at a time has it.
class Lock {
public:
    void Take();
    void Give() { taken_ = false; }

private:
    volatile bool taken_;
};

// ---- Work.cpp ----

void DoWork(uint32_t rounds);  // and print how much each function has done
void FilterSensor();           // for the RTC

// ---- kscope_port.cpp: the profiler ----

void StartProfiler();
void ProfilerTick(const InterruptFrame& frame);
void ProfilerCommand(const char* line);
void StopProfiler();  // waits until the host has everything

}  // namespace lagoon
