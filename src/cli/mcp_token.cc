#include "cli/mcp_token.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "api/mcp/random_name.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "base/io.h"

namespace sandglass::cli {
namespace {

constexpr size_t kMinTokenBytes = 16, kMaxTokenBytes = 512;

Result<std::string> MakeToken(const std::string& path) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return Error::FromErrno(errno, fmt::format("make the token file {}", path));
  const std::string token = api::mcp::RandomName();
  TRY(WriteFully(file.get(), AsBytes(token + "\n")));
  return token;
}

}  // namespace

Result<std::string> TokenFromFile(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file && errno == ENOENT) return MakeToken(path);
  if (!file) return Error::FromErrno(errno, fmt::format("open the token file {}", path));
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return Error::FromErrno(errno, path);
  if (!S_ISREG(info.st_mode))
    return Error(Code::kInvalid, fmt::format("{} is no regular file", path));
  if ((info.st_mode & 077) != 0)
    return Error(
        Code::kDenied,
        fmt::format("{} can be read by others; `chmod 600` it and change the token", path));
  TRY_ASSIGN(const Bytes content, ReadFully(file.get(), kMaxTokenBytes + 1));
  std::string token(AsText(content));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  const bool is_plain = std::ranges::all_of(token, [](char c) { return c > ' ' && c < 0x7f; });
  if (token.size() < kMinTokenBytes || token.size() > kMaxTokenBytes || !is_plain)
    return Error(Code::kInvalid,
                 fmt::format("{} holds no token: that is one line of {} to {} letters, digits or "
                             "signs, without spaces",
                             path, kMinTokenBytes, kMaxTokenBytes));
  return token;
}

}  // namespace sandglass::cli
