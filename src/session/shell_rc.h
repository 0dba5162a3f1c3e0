// The script that makes a bash tell its command lines to the session.
#pragma once

#include <string>
#include <vector>

namespace sandglass::session {

// For --rcfile. The channel is the first given descriptor of the shell (control/shim_start.h), the script itself the second.
std::string ShellRc();
// Of a shell that reads it.
std::vector<std::string> ShellArguments(const std::string& bash);

}  // namespace sandglass::session
