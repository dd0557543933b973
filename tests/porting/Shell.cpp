// SPDX-License-Identifier: GPL-2.0-or-later
// Lagoon: main, and the shell on COM1.
#include "Lagoon.hpp"

namespace lagoon {

namespace {

// What follows a word at the beginning of a line; nullptr: the line begins otherwise.
const char* After(const char* line, const char* word) {
    while (*word)
        if (*line++ != *word++) return nullptr;
    if (*line && *line != ' ') return nullptr;
    return *line ? line + 1 : line;
}

uint32_t Number(const char* text) {
    uint32_t number = 0;
    while (*text >= '0' && *text <= '9') number = number * 10 + uint32_t(*text++ - '0');
    return number;
}

void ListFibers() {
    for (uint32_t number = 1; const Fiber* fiber = Fiber::ByNumber(number); number++) {
        if (fiber->IsDone()) continue;
        Print(number);
        Print(" ");
        Print(fiber->Name());
        Print("\n");
    }
}

void Obey(const char* line) {
    if (const char* rounds = After(line, "work")) {
        DoWork(Number(rounds));
    } else if (After(line, "fibers")) {
        ListFibers();
    } else if (const char* command = After(line, "kscope")) {
        ProfilerCommand(command);
    } else if (After(line, "off")) {
        StopProfiler();
        PowerOff();
    } else if (*line) {
        Print("commands: work ROUNDS, fibers, kscope COMMAND, off\n");
    }
}

void RunShell(uint32_t) {
    char line[80];
    for (;;) {
        uint32_t length = 0;
        Print("lagoon> ");
        for (int byte = 0; byte != '\n' && byte != '\r';) {
            while ((byte = com1.TryGet()) < 0) Fiber::Sleep(20);
            if (byte >= ' ' && length < sizeof(line) - 1) line[length++] = char(byte);
        }
        line[length] = 0;
        Obey(line);
    }
}

}  // namespace

extern "C" void LagoonMain() {
    Memory::Start();
    com1.Start();
    com2.Start();
    Fiber::Spawn("shell", RunShell);
    StartProfiler();
    StartInterrupts();
    Fiber::BecomeIdle();
}

}  // namespace lagoon
