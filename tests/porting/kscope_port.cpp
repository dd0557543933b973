// SPDX-License-Identifier: GPL-2.0-or-later
// Lagoon: the profiler. doc/porting.md quotes this file, step by step.
#include "Lagoon.hpp"
#include "kscope.h"

extern "C" const char InterruptReturn[];  // in start.S, after the call of the handler

namespace lagoon {

namespace {

kscope profiler;
kscope_port port;
alignas(8) uint8_t memory[1 << 20];
Lock lock;

uint64_t Time(void*) { return pit.Nanoseconds(); }

size_t Send(void*, const void* bytes, size_t size) {
    const uint8_t* at = static_cast<const uint8_t*>(bytes);
    size_t sent = 0;
    while (sent < size && com2.TryPut(at[sent])) sent++;
    return sent;
}

int Receive(void*) { return com2.TryGet(); }

bool timerIsOn;
int64_t untilSample;  // ns

void Timer(void*, uint64_t ns) {
    timerIsOn = ns != 0;
    untilSample = timerIsOn ? untilSample + int64_t(ns) : 0;
}

bool Read(void*, const kscope_at*, void* to, uintptr_t from, size_t size) {
    const uintptr_t last = from + size - 1;
    if (last < from || !Memory::IsMapped(from) || !Memory::IsMapped(last)) return false;
    __builtin_memcpy(to, reinterpret_cast<const void*>(from), size);
    return true;
}

bool Task(void*, size_t i, kscope_task* task) {
    const Fiber* fiber = Fiber::ByNumber(uint32_t(i) + 1);
    if (!fiber) return false;
    task->id = fiber->Number();
    task->name = fiber->Name();
    return true;
}

kscope_at Interrupted(const InterruptFrame& frame) {
    kscope_at at = {};
    at.task = Fiber::Current()->Number();
    at.pc = frame.eip;
    at.fp = frame.ebp;
    at.sp = frame.Esp();
    Read(nullptr, &at, &at.link, at.sp, sizeof(at.link));
    return at;
}

bool Trap(void*, const kscope_at* at, uintptr_t back, uintptr_t fp, kscope_at* before) {
    InterruptFrame frame;
    if (back != reinterpret_cast<uintptr_t>(InterruptReturn)) return false;
    if (!Read(nullptr, at, &frame, fp, sizeof(frame))) return false;
    *before = Interrupted(*reinterpret_cast<const InterruptFrame*>(fp));
    return true;
}

void Serve(uint32_t) {
    for (;;) {
        lock.Take();
        const bool more = kscope_serve(&profiler);
        lock.Give();
        if (!more) Fiber::Sleep(8);
    }
}

}  // namespace

void ProfilerTick(const InterruptFrame& frame) {
    kscope_apply(&profiler, 0);
    if (!timerIsOn || (untilSample -= Pit::kTickNs) > 0) return;
    const kscope_at at = Interrupted(frame);
    kscope_timer(&profiler, 0, &at);
}

void StartProfiler() {
    char answer[80];
    port.arch = "i386";
    port.name = "Lagoon";
    port.cpus = 1;
    port.time = Time;
    port.send = Send;
    port.receive = Receive;
    port.timer = Timer;
    port.read = Read;
    port.trap = Trap;
    port.task = Task;
    if (!kscope_init(&profiler, &port, memory, sizeof(memory))) return;
    kscope_command(&profiler, "jitter 50", answer, sizeof(answer));
    Fiber::Spawn("profiler", Serve);
}

void ProfilerCommand(const char* line) {
    char answer[512];
    lock.Take();
    kscope_command(&profiler, line, answer, sizeof(answer));
    lock.Give();
    Print(*answer ? answer : "ok");
    Print("\n");
}

void StopProfiler() {
    ProfilerCommand("stop");
    while (!kscope_is_done(&profiler)) Fiber::Sleep(8);
}

}  // namespace lagoon
