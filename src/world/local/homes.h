// Homes of the host: which of their files a world is shown although its own home lies there, and which it is not shown even if somebody
// shows it the whole home. Tables, and where homes are. Any thread.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sandglass::world {

// Relative to a home. Programs, their parts, and settings without which git and others do not work; nothing that is meant to hold
// credentials, and no cache. They are shown read-only.
std::span<const char* const> ShownOfHome();
// Relative to a home. Keys, tokens, passwords, and what browsers know.
std::span<const char* const> SecretsOfHome();

// "": the text of /etc/passwd has no such user. Pure. Other sources of accounts are not asked: they may be slow, or far away.
std::string HomeOfAccount(std::string_view passwd, uid_t uid);
std::string HomeOfThisAccount();
// May a world do without what is there? Some accounts have a folder of the system as their home.
bool CanBeCovered(std::string_view home);

inline constexpr char kHomesOfAll[] = "/home";
// Folders that may be homes, those that there are without symlinks: these, everybody's in one folder, and root's.
std::vector<std::string> PossibleHomes(std::span<const std::string> known,
                                       const std::string& everybody = kHomesOfAll);

}  // namespace sandglass::world
