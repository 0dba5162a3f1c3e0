// sandglass discard: forgets all steps.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/fd.h"
#include "base/printable.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/store_access.h"
#include "session/open_log.h"
#include "undo/place.h"

namespace sandglass::cli {
namespace {

constexpr Option kOptions[] = {kYesOption,     kProjectOption, kStoreOption,
                               kUndoDirOption, kJsonOption,    kHelpOption};

// What the question says. A store that cannot be read (another format, damage) can be discarded all
// the same.
std::string WhatIsLost(const undo::UndoPaths& paths) {
  const auto reader = undo::StoreReader::Open(paths);
  if (!reader.ok()) return "an undo store that this program cannot read";
  const auto history = reader->History();
  if (!history.ok()) return "an undo store that this program cannot read";
  size_t steps = 0;
  for (const undo::HistoryEntry& entry : *history) steps += entry.step ? 1 : 0;
  return fmt::format("{} recorded {}", steps, steps == 1 ? "step" : "steps");
}

// What is left is a version and a lock. Whoever has taken that meanwhile keeps the store; a folder that holds more stays.
void RemoveEmptyStore(const std::string& store) {
  const Fd folder(::open(store.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return;
  const Fd lock(::openat(folder.get(), "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return;
  const auto names = undo::ListNames(folder.get());
  if (!names.ok() || !std::ranges::all_of(*names, [](const std::string& name) {
        return name == "lock" || name == "version";
      }))
    return;
  ::unlinkat(folder.get(), "version", 0);
  ::unlinkat(folder.get(), "lock", 0);
  ::rmdir(store.c_str());
}

Status Run(const Arguments& arguments, Console& console) {
  TRY_ASSIGN(auto paths, FindPaths(arguments));
  if (!StoreExists(paths)) {
    return Error(Code::kNotFound,
                 fmt::format("there is nothing to discard: {} holds no undo store", paths.store));
  }
  if (!arguments.Has(kYesOption.name)) {
    TRY_ASSIGN(bool sure,
               console.Confirm(fmt::format("Forget {} of {}? Its files stay as they are.",
                                           WhatIsLost(paths), PrintableName(paths.project))));
    if (!sure) return Error(Code::kCancelled, "nothing was discarded");
  }
  const Status discarded = session::DiscardLogSoon(paths);
  if (!discarded.ok()) return NamingTheSession(discarded.error(), paths.store);
  RemoveEmptyStore(paths.store);
  if (console.wants_json()) {
    console.PrintJson(Json::Object({{"discarded", BytesToJson(paths.store)}}));
  } else {
    console.Print(fmt::format("{}: removed\n", PrintableName(paths.store)));
  }
  return Ok();
}

}  // namespace

constinit const Command kDiscardCommand{
    .name = "discard",
    .summary = "forget all recorded steps",
    .description =
        "Removes the undo store, whatever its format version; the project is not touched. Nothing "
        "can be undone or redone "
        "afterwards. Asks first on a terminal; elsewhere --yes is required.",
    .options = kOptions,
    .operands = {},
    .run = Run,
};

}  // namespace sandglass::cli
