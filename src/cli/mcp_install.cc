#include "cli/mcp_install.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "api/mcp/random_name.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/printable.h"
#include "cli/mcp_client_files.h"
#include "cli/store_access.h"

namespace sandglass::cli {
namespace {

constexpr size_t kMaxConfigBytes = size_t{32} << 20;

// Whose a file is, and who may use it.
struct Access {
  uid_t owner;
  gid_t group;
  mode_t mode;
  bool operator==(const Access&) const = default;
};

// A file as it was found.
struct Found {
  std::string path;  // without symlinks, so that a link to it stays one
  std::string content;
  std::optional<Access> access;  // none: there is no file
};

Result<Found> Missing(Found found) {
  std::error_code error;
  if (std::filesystem::is_symlink(found.path, error))
    return Error(Code::kInvalid, fmt::format("{} is a link to what is not there; make its target, "
                                             "or remove the link",
                                             found.path));
  return found;
}

Result<Found> Read(const std::string& path) {
  std::error_code error;
  const std::string real = std::filesystem::weakly_canonical(path, error).string();
  Found found{.path = error ? path : real};
  const Fd file(::open(found.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file && errno == ENOENT) return Missing(std::move(found));
  if (!file) return Error::FromErrno(errno, fmt::format("read {}", found.path));
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return Error::FromErrno(errno, found.path);
  if (!S_ISREG(info.st_mode))
    return Error(Code::kInvalid, fmt::format("{} is no file", found.path));
  TRY_ASSIGN(const Bytes bytes, ReadFully(file.get(), kMaxConfigBytes));
  found.content = AsText(bytes);
  found.access = Access{info.st_uid, info.st_gid, info.st_mode & 07777};
  return found;
}

// Root may replace what is another user's, who has to be able to use it afterwards.
Status GiveTo(int file, const Access& access) {
  struct stat info{};
  if (::fstat(file, &info) != 0) return Error::FromErrno(errno, "stat");
  if (info.st_uid == access.owner && info.st_gid == access.group) return Ok();
  if (::fchown(file, access.owner, access.group) != 0)
    return Error::FromErrno(errno, "keep its owner and group");
  return Ok();
}

// `access` is that of the file which it replaces.
Status WriteNew(const std::string& path, std::string_view content,
                const std::optional<Access>& access) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return Error::FromErrno(errno, fmt::format("write {}", path));
  TRY(WriteFully(file.get(), AsBytes(content)));
  if (access) TRY(GiveTo(file.get(), *access));
  // Behind the change of the owner, which takes bits away.
  if (::fchmod(file.get(), access ? access->mode : 0600) != 0 || ::fsync(file.get()) != 0)
    return Error::FromErrno(errno, path);
  return Ok();
}

// Whoever reads sees the old file or the new one, and what somebody wrote in the meantime is not lost.
Status Replace(const Found& found, std::string_view content) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(found.path).parent_path(), error);
  if (error)
    return Error::FromErrno(error.value(), fmt::format("make the folder of {}", found.path));
  const std::string temporary = fmt::format("{}.{}", found.path, api::mcp::RandomName());
  const auto written = [&]() -> Status {
    TRY(WriteNew(temporary, content, found.access));
    TRY_ASSIGN(const Found now, Read(found.path));
    if (now.content != found.content || now.access != found.access)
      return Error(Code::kConflict, fmt::format("{} has just been changed; try again", found.path));
    if (::rename(temporary.c_str(), found.path.c_str()) != 0)
      return Error::FromErrno(errno, fmt::format("write {}", found.path));
    return Ok();
  }();
  if (!written.ok()) (void)::unlink(temporary.c_str());
  return written;
}

Result<std::string> ProgramPath() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return Error::FromErrno(error.value(), "find this program");
  return path.string();
}

Result<McpEntry> EntryFor(const McpClientFile& client, const Arguments& arguments) {
  McpEntry entry;
  TRY_ASSIGN(entry.program, ProgramPath());
  if (arguments.Has(kProjectOption.name) || client.project == ProjectFrom::kNowhere) {
    TRY_ASSIGN(const undo::UndoPaths paths, FindPaths(arguments));
    entry.project = paths.project;
  }
  return entry;
}

Result<std::string> Changed(const McpClientFile& client, const std::string& text,
                            const std::optional<McpEntry>& entry) {
  if (client.format == ConfigFormat::kToml)
    return entry ? SetTomlEntry(text, client.entry, EntryText(client, *entry))
                 : RemoveTomlEntry(text, client.entry);
  return entry ? SetJsonEntry(text, client.entry, EntryText(client, *entry))
               : RemoveJsonEntry(text, client.entry);
}

// The entry that is there, with whatever somebody added to it; "": none.
Result<std::string> Present(const McpClientFile& client, const std::string& text) {
  return client.format == ConfigFormat::kToml ? FindTomlEntry(text, client.entry)
                                              : FindJsonEntry(text, client.entry);
}

// The entry alone, as a file that has nothing else would hold it.
std::string Shown(const McpClientFile& client, const McpEntry& entry) {
  const auto alone = Changed(client, "", entry);
  return alone.ok() ? *alone : "";
}

void Show(const McpClientFile& client, const Found& found, const std::optional<McpEntry>& entry,
          Console& console) {
  const std::string file = PrintableName(found.path);
  if (entry)
    console.Print(
        fmt::format("{}: to be written into {}:\n{}", client.title, file, Shown(client, *entry)));
  else
    console.Print(fmt::format("{}: to be removed from {}: {}.{}\n", client.title, file,
                              client.entry.table, client.entry.name));
  // All of it goes, also what is not ours: its environment, other arguments.
  const auto old = Present(client, found.content);
  if (old.ok() && !old->empty())
    console.Print(fmt::format("{}:\n{}{}", entry ? "replaces" : "it is", PrintableText(*old),
                              old->ends_with('\n') ? "" : "\n"));
}

}  // namespace

Status InstallMcp(const Arguments& arguments, Console& console) {
  if (arguments.operands().size() < 2)
    return Error(Code::kInvalid,
                 fmt::format("mcp install: name a client: {}", fmt::join(kMcpClients, ", ")));
  const McpClientFile& client = FindMcpClientFile(arguments.operands()[1]);
  TRY_ASSIGN(const std::string path, PathOf(client));
  std::optional<McpEntry> entry;
  if (!arguments.Has(kRemoveOption.name)) {
    TRY_ASSIGN(entry, EntryFor(client, arguments));
  }
  TRY_ASSIGN(const Found found, Read(path));
  const auto changed = Changed(client, found.content, entry);
  if (!changed.ok())
    return Error(Code::kInvalid,
                 fmt::format("{} is left as it is: {}", found.path, changed.error().message()));
  if (*changed == found.content) {
    console.Print(fmt::format("{}: nothing to do in {}\n", client.title, PrintableName(path)));
    return Ok();
  }
  Show(client, found, entry, console);
  if (arguments.Has(kDryRunOption.name)) return Ok();
  if (!arguments.Has(kYesOption.name)) {
    TRY(console.Flush());
    TRY_ASSIGN(const bool goes_on, console.Confirm("Do that?"));
    if (!goes_on) return Error(Code::kCancelled, "nothing was written");
  }
  TRY(Replace(found, *changed));
  console.Print("done; start the client anew\n");
  return Ok();
}

}  // namespace sandglass::cli
