#include "bridge/supervise/decode.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <utime.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>

namespace sandglass::bridge {
namespace {

Error Refused(int sys_errno, std::string_view what) { return Error::FromErrno(sys_errno, what); }

template <class Number>
std::optional<Number> ParseNumber(std::string_view text, int base = 10) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  Number value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (failure != std::errc{}) return std::nullopt;
  return value;
}

// The words of a line, split at blanks.
std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t start = line.find_first_not_of(" \t");
    if (start == std::string_view::npos) return words;
    const size_t end = std::min(line.find_first_of(" \t", start), line.size());
    words.push_back(line.substr(start, end - start));
    line.remove_prefix(end);
  }
}

template <class Each>
void ForEachLine(std::string_view text, const Each& each) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    each(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

template <class Number>
Number NumberAt(const std::vector<std::string_view>& words, size_t index, Number fallback,
                int base = 10) {
  if (index >= words.size()) return fallback;
  return ParseNumber<Number>(words[index], base).value_or(fallback);
}

// mountinfo writes blanks and the like as \ooo.
std::string Unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto code = text[i] == '\\' && i + 3 < text.size()
                          ? ParseNumber<unsigned>(text.substr(i + 1, 3), 8)
                          : std::nullopt;
    if (code && *code < 256) {
      out.push_back(static_cast<char>(*code));
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

}  // namespace

Result<OpenHow> DecodeOpenHow(ByteView bytes) {
  if (bytes.size() < sizeof(open_how)) return Refused(EINVAL, "open_how");
  ByteCursor in(bytes);
  OpenHow how;
  TRY_ASSIGN(how.flags, in.Take<uint64_t>());
  TRY_ASSIGN(how.mode, in.Take<uint64_t>());
  TRY_ASSIGN(how.resolve, in.Take<uint64_t>());
  TRY_ASSIGN(ByteView newer, in.TakeBytes(in.remaining()));
  if (std::any_of(newer.begin(), newer.end(), [](uint8_t byte) { return byte != 0; }))
    return Refused(E2BIG, "open_how");
  return how;
}

Status CheckOpenHow(const OpenHow& how) {
  constexpr uint64_t kKnownResolve = RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS |
                                     RESOLVE_BENEATH | RESOLVE_IN_ROOT | RESOLVE_CACHED;
  constexpr uint64_t kKnownFlags = O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND |
                                   O_NONBLOCK | O_SYNC | O_ASYNC | O_DIRECT | O_LARGEFILE |
                                   O_DIRECTORY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC | O_PATH |
                                   O_TMPFILE | 0100000;
  const bool creates = (how.flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) != 0;
  const bool both_roots =
      (how.resolve & RESOLVE_BENEATH) != 0 && (how.resolve & RESOLVE_IN_ROOT) != 0;
  const bool valid = (how.flags & ~kKnownFlags) == 0 && (how.resolve & ~kKnownResolve) == 0 &&
                     !both_roots && (creates ? (how.mode & ~07777ull) == 0 : how.mode == 0);
  return valid ? Ok() : Status(Refused(EINVAL, "open_how"));
}

bool IsModeAsAcl(ByteView value) {
  // The layout of linux/posix_acl_xattr.h: a version, then a tag, permissions and an id each. Only these tags may be there once.
  constexpr uint32_t kVersion = 2;
  constexpr uint16_t kOwner = 1, kGroup = 4, kOthers = 0x20;
  ByteCursor in(value);
  const auto version = in.Take<uint32_t>();
  if (!version.ok() || *version != kVersion) return false;
  for (const uint16_t wanted : {kOwner, kGroup, kOthers}) {
    const auto tag = in.Take<uint16_t>();
    if (!tag.ok() || *tag != wanted) return false;
    if (!in.Take<uint16_t>().ok() || !in.Take<uint32_t>().ok()) return false;
  }
  return in.remaining() == 0;
}

size_t TimesSize(TimeLayout layout) {
  switch (layout) {
    case TimeLayout::kTimespec:
      return 2 * sizeof(timespec);
    case TimeLayout::kTimeval:
      return 2 * sizeof(timeval);
    case TimeLayout::kSeconds:
      return sizeof(utimbuf);
  }
  return 0;
}

Result<Times> DecodeTimes(ByteView bytes, TimeLayout layout) {
  ByteCursor in(bytes);
  Times times;
  for (timespec& time : times) {
    TRY_ASSIGN(int64_t seconds, in.Take<int64_t>());
    int64_t fraction = 0;
    if (layout != TimeLayout::kSeconds) {
      TRY_ASSIGN(fraction, in.Take<int64_t>());
    }
    if (layout == TimeLayout::kTimeval) {
      if (fraction < 0 || fraction >= 1'000'000) return Refused(EINVAL, "microseconds");
      fraction *= 1000;
    }
    time = {.tv_sec = seconds, .tv_nsec = fraction};
  }
  return times;
}

std::optional<std::string> DecodeUnixPath(ByteView address) {
  ByteCursor in(address);
  const auto family = in.Take<sa_family_t>();
  if (!family.ok() || *family != AF_UNIX || in.empty()) return std::nullopt;
  const size_t size = std::min(in.remaining(), sizeof(sockaddr_un::sun_path));
  const auto bytes = in.TakeBytes(size);
  const std::string_view path = AsText(*bytes);
  if (path.front() == '\0') return std::nullopt;
  return std::string(path.substr(0, std::min(path.find('\0'), path.size())));
}

TaskStatus DecodeStatus(std::string_view text) {
  TaskStatus status;
  ForEachLine(text, [&](std::string_view line) {
    const std::vector<std::string_view> words = Words(line);
    if (words.empty()) return;
    const std::string_view key = words[0];
    if (key == "Umask:") status.umask = NumberAt<uint32_t>(words, 1, 022, 8) & 0777;
    if (key == "Tgid:") status.tgid = NumberAt<pid_t>(words, 1, 0);
    if (key == "NStgid:") status.inner_tgid = NumberAt<pid_t>(words, words.size() - 1, 0);
    if (key == "NSpid:") status.inner_tid = NumberAt<pid_t>(words, words.size() - 1, 0);
    if (key == "Threads:") status.threads = NumberAt<uint32_t>(words, 1, 1);
    if (key == "Uid:") {
      status.real_uid = NumberAt<uid_t>(words, 1, 0);
      status.fs_uid = NumberAt<uid_t>(words, 4, 0);
    }
    if (key == "Gid:") {
      status.real_gid = NumberAt<gid_t>(words, 1, 0);
      status.fs_gid = NumberAt<gid_t>(words, 4, 0);
    }
    if (key == "CapEff:") status.effective = NumberAt<uint64_t>(words, 1, 0, 16);
    if (key == "CapPrm:") status.permitted = NumberAt<uint64_t>(words, 1, 0, 16);
    if (key != "Groups:") return;
    for (size_t i = 1; i < words.size(); ++i) {
      if (const auto group = ParseNumber<gid_t>(words[i])) status.groups.push_back(*group);
    }
  });
  return status;
}

std::optional<uint64_t> DecodeFileSizeLimit(std::string_view text) {
  std::optional<uint64_t> limit;
  ForEachLine(text, [&](std::string_view line) {
    constexpr std::string_view kKey = "Max file size";
    if (!line.starts_with(kKey)) return;
    limit = ParseNumber<uint64_t>(line.substr(kKey.size()));
  });
  return limit;
}

std::vector<MountLine> DecodeMountInfo(std::string_view text) {
  std::vector<MountLine> mounts;
  ForEachLine(text, [&](std::string_view line) {
    const std::vector<std::string_view> words = Words(line);
    if (words.size() < 5) return;
    const auto id = ParseNumber<uint64_t>(words[0]);
    if (!id) return;
    mounts.push_back({*id, std::string(words[2]), Unescape(words[3]), Unescape(words[4])});
  });
  return mounts;
}

}  // namespace sandglass::bridge
