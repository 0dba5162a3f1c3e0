// What a machine refuses of what a local world needs, found by trying, and what to do about it. Any thread.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "world/local/without_landlock.h"

namespace sandglass::world {

// Each: "" if nothing is missing. Else what is, and what to do.
//
// The kernel's version, namespaces, and mounts in them. Starts a process.
std::string WhyNoNamespaces();
// seccomp with user notification.
std::string WhyNoSupervision();
// Landlock that knows of opening and of cutting files: see child/write_places.h.
std::string WhyNoWriteLock();
// The first of these.
std::string WhyNoLocalWorld();

// As much of that as costs no process: what a world would lack, or lack silently, is refused before anything is started.
// kUnsupported.
Status CheckMachine(const std::optional<WithoutLandlock>& accepted);

// A step of the containment failed: the same error, with what to do about it if the machine is to blame.
Error WithAdvice(const Error& failure);

}  // namespace sandglass::world
