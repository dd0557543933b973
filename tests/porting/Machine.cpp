// SPDX-License-Identifier: GPL-2.0-or-later
// Lagoon: the PC: interrupts, timers, serial ports, page tables.
#include "Lagoon.hpp"

namespace lagoon {

SerialPort com1(0x3f8), com2(0x2f8);
Pit pit;
Rtc rtc;

namespace {

void Out8(uint16_t port, uint8_t value) { asm volatile("outb %0, %1" : : "a"(value), "Nd"(port)); }

uint8_t In8(uint16_t port) {
    uint8_t value;
    asm volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

Device* devices[16];

struct Gate {
    uint16_t low, selector, type, high;
};
Gate gates[48];

struct [[gnu::packed]] TablePointer {
    uint16_t size;
    const void* table;
};

void StartPic(uint16_t port, uint8_t firstVector, uint8_t cascade) {
    Out8(port, 0x11);
    Out8(port + 1, firstVector);
    Out8(port + 1, cascade);
    Out8(port + 1, 1);
    Out8(port + 1, 0xff);
}

void Attach(uint32_t irq, Device* device) {
    const uint16_t port = irq < 8 ? 0x21 : 0xa1;
    devices[irq] = device;
    Out8(port, In8(port) & ~(1 << irq % 8));
}

}  // namespace

extern "C" const uint32_t VectorTable[32];

void StartInterrupts() {
    for (uint32_t i = 0; i < 32; i++) {
        Gate& gate = gates[i < 16 ? i : i + 16];  // exceptions have vectors 0 to 15 here, IRQs 32 to 47
        gate = {uint16_t(VectorTable[i]), 8, 0x8e00, uint16_t(VectorTable[i] >> 16)};
    }
    const TablePointer pointer = {sizeof(gates) - 1, gates};
    asm volatile("lidt %0" : : "m"(pointer));
    StartPic(0x20, 32, 4);
    StartPic(0xa0, 40, 2);
    Out8(0x21, 0xfb);  // the second PIC
    pit.Start();
    rtc.Start();
}

// Each handler runs with interrupts off, until it switches them on itself.
extern "C" void DispatchInterrupt(uint32_t irq, const InterruptFrame* frame) {
    if (irq >= 8) Out8(0xa0, 0x20);
    Out8(0x20, 0x20);
    if (devices[irq]) devices[irq]->OnInterrupt(*frame);
}

extern "C" [[noreturn]] void OnException(uint32_t vector, uint32_t, uint32_t eip) {
    Print("panic: exception ");
    Print(vector);
    Print(" at ");
    Print(eip);
    Print("\n");
    PowerOff();
}

void PowerOff() {
    asm volatile("outw %0, %1" : : "a"(uint16_t(0x2000)), "d"(uint16_t(0x604)));
    for (;;) asm volatile("cli; hlt");
}

// ---- timers ----

void Pit::Start() {
    Out8(0x43, 0x34);  // counter 0, again and again
    Out8(0x40, uint8_t(kDivisor));
    Out8(0x40, kDivisor >> 8);
    Attach(0, this);
}

void Pit::OnInterrupt(const InterruptFrame& frame) {
    ticks_ = ticks_ + 1;
    ProfilerTick(frame);
    if (Ticks() % kTicksPerSlice == 0) Fiber::OnSlice();
}

// The counter counts down. It may have begun anew without its interrupt yet, so the time may seem to go back.
uint64_t Pit::Nanoseconds() {
    InterruptGuard guard;
    Out8(0x43, 0);
    const uint32_t low = In8(0x40), left = low | In8(0x40) << 8;
    const uint64_t now = (ticks_ * kDivisor + (kDivisor - left)) * 838;
    if (now > latest_) latest_ = now;
    return latest_;
}

void Rtc::Start() {
    Out8(0x70, 0x8a);
    Out8(0x71, 0x29);  // 128 Hz
    Out8(0x70, 0x8b);
    Out8(0x71, 0x42);
    Attach(8, this);
    Out8(0x70, 0x0c);
    In8(0x71);
}

void Rtc::OnInterrupt(const InterruptFrame&) {
    Out8(0x70, 0x0c);
    In8(0x71);
    asm volatile("sti");  // this takes long: let the PIT interrupt it
    FilterSensor();
    asm volatile("cli");
}

// ---- serial ports ----

void SerialPort::Start() {
    Out8(base_ + 3, 3);  // 8 bits
    Out8(base_ + 2, 7);  // FIFOs
}

bool SerialPort::TryPut(uint8_t byte) {
    if (!(In8(base_ + 5) & 0x20)) return false;
    Out8(base_, byte);
    return true;
}

int SerialPort::TryGet() { return In8(base_ + 5) & 1 ? In8(base_) : -1; }

void Print(const char* text) {
    for (; *text; text++)
        while (!com1.TryPut(uint8_t(*text))) Fiber::Yield();
}

void Print(uint32_t number) {
    char digits[11], *at = digits + 10;
    *at = 0;
    do *--at = char('0' + number % 10);
    while (number /= 10);
    Print(at);
}

// ---- memory: the first 8 MB, without page 0 and a page below each stack ----

alignas(4096) static uint32_t directory[1024], tables[2][1024];

void Memory::Start() {
    for (uint32_t i = 1; i < 2048; i++) tables[i / 1024][i % 1024] = i << 12 | 3;
    for (uint32_t i = 0; i < 2; i++) directory[i] = reinterpret_cast<uintptr_t>(tables[i]) | 3;
    asm volatile("mov %0, %%cr3; mov %%cr0, %%eax; or $0x80000000, %%eax; mov %%eax, %%cr0"
                 : : "r"(directory) : "eax", "memory");
}

void Memory::Unmap(const void* page) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(page);
    tables[address >> 22][address >> 12 & 1023] = 0;
    asm volatile("invlpg (%0)" : : "r"(page) : "memory");
}

bool Memory::IsMapped(uintptr_t address) {
    return directory[address >> 22] & 1 && tables[address >> 22][address >> 12 & 1023] & 1;
}

}  // namespace lagoon

// Compilers call these.
extern "C" void* memcpy(void* to, const void* from, size_t size) {
    void* result = to;
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
    return result;
}

extern "C" void* memset(void* to, int value, size_t size) {
    void* result = to;
    asm volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(value) : "memory");
    return result;
}

extern "C" void __cxa_pure_virtual() { lagoon::PowerOff(); }
