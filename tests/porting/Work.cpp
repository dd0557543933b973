// SPDX-License-Identifier: GPL-2.0-or-later
// Lagoon: work. All of it turns a wheel, so that equal numbers of turns take equal time. Each function counts its
// turns, in thousands.
#include "Lagoon.hpp"

extern "C" void ChecksumWords(uint32_t turns);
extern "C" void ScrambleWords(uint32_t turns);

namespace lagoon {

namespace {

enum Job { kRise, kFall, kStrike, kCoarse, kFine, kScramble, kFilter, kBeat, kJobs };

const char* const names[kJobs] = {"Rise", "Fall", "Strike", "Coarse", "Fine", "Scramble", "Filter", "Beat"};
uint32_t done[kJobs];
volatile bool works;  // the sensor and the pulse are only on meanwhile

// Without debug information, it counts as part of the function around it.
[[gnu::always_inline, gnu::nodebug]] inline void Turn(Job job, uint32_t thousands) {
    uint32_t turns = thousands * 1000, wheel = 1;
    done[job] += thousands;
    asm volatile("1: rol $3, %1; dec %0; jnz 1b" : "+r"(turns), "+r"(wheel));
}

}  // namespace

// Two functions, and their caller.
struct Tide {
    [[gnu::noinline]] static void Rise() { Turn(kRise, 5); }
    [[gnu::noinline]] static void Fall() { Turn(kFall, 2); }

    [[gnu::noinline]] static void Cycle() {
        Rise();
        Fall();
    }

    static void Run(uint32_t rounds) {
        for (uint32_t i = 0; i < 4 * rounds; i++) Cycle();
    }
};

// A recursion.
struct Heron {
    [[gnu::noinline]] static void Strike() { Turn(kStrike, 4); }

    [[gnu::noinline]] static void Dive(uint32_t depth) {
        if (depth)
            Dive(depth - 1);
        else
            Strike();
    }

    static void Run(uint32_t rounds) {
        for (uint32_t i = 0; i < 5 * rounds; i++) Dive(2);
    }
};

// Routines in assembly. The first has no stack frame, and two callers.
struct Mill {
    [[gnu::noinline]] static void GrindCoarse() {
        done[kCoarse] += 3;
        ChecksumWords(3000);
    }

    [[gnu::noinline]] static void GrindFine() {
        done[kFine] += 3;
        ChecksumWords(3000);
    }

    [[gnu::noinline]] static void Mix() {
        done[kScramble] += 4;
        ScrambleWords(4000);
    }

    static void Run(uint32_t rounds) {
        for (uint32_t i = 0; i < rounds; i++) {
            GrindCoarse();
            GrindCoarse();
            GrindCoarse();
            GrindFine();
            Mix();
        }
    }
};

// A little work at the beginning of each slice.
struct Pulse {
    [[gnu::noinline]] static void Beat() { Turn(kBeat, 24); }

    static void Run(uint32_t) {
        while (works) {
            Beat();
            Fiber::SleepUntilSlice();
        }
    }
};

// Called in an interrupt, on the interrupt stack.
void FilterSensor() {
    if (works) Turn(kFilter, 8);
}

void DoWork(uint32_t rounds) {
    for (uint32_t& one : done) one = 0;
    works = true;
    Fiber* fibers[] = {Fiber::Spawn("tide", Tide::Run, rounds), Fiber::Spawn("heron", Heron::Run, rounds),
                       Fiber::Spawn("mill", Mill::Run, rounds)};
    Fiber* pulse = Fiber::Spawn("pulse", Pulse::Run, 0, true);
    for (const Fiber* fiber : fibers)
        while (!fiber->IsDone()) Fiber::Sleep(4);
    works = false;
    while (!pulse->IsDone()) Fiber::Sleep(4);
    for (int job = 0; job < kJobs; job++) {
        Print("work: ");
        Print(names[job]);
        Print(" ");
        Print(done[job]);
        Print("\n");
    }
}

}  // namespace lagoon
