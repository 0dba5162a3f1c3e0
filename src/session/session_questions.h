// Whom a session asks when a safeguard wants to know.
#pragma once

#include <cstdint>

namespace sandglass::session {

enum class Questions : uint8_t {
  kNobody,  // so every question is denied
  kGuest,   // whoever shares the loop: loop_guest.h
};

}  // namespace sandglass::session
