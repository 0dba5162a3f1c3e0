// Which folders a command may work on: --project, with its suffix, and what is refused as one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/arguments.h"
#include "session/session.h"

namespace sandglass::cli {

inline constexpr Option kProjectsOption{
    .name = "project",
    .letter = 'p',
    .value = ValueKind::kFolder,
    .value_name = "DIR[:ro]",
    .help =
        "a project folder; with :ro the command may only read it. May be repeated, up to 8 times; "
        "each has its own undo store, and the command starts in the first. Default: the nearest "
        "folder at or above the current one that has an undo store, else the current folder"};
inline constexpr Option kAllowBroadOption{
    .name = "allow-broad",
    .help = "even if a project is your whole home folder or a folder of the system"};

// At least one. kInvalid: the options contradict each other. kNotFound: there is no such folder.
Result<std::vector<session::SessionProject>> ChooseProjects(const Arguments& arguments);

// One that somebody named, with the same refusals.
Result<session::SessionProject> ChooseProject(const Arguments& arguments, const std::string& given,
                                              world::Access access);

// What to type to take back a step of this project, from the current folder; and any other command on its store.
std::string UndoCommandFor(const Arguments& arguments, const undo::UndoPaths& paths);
std::string WordsFor(std::string_view command, const Arguments& arguments,
                     const undo::UndoPaths& paths);

}  // namespace sandglass::cli
