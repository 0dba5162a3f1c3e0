#include "session/files/read_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/beneath.h"
#include "base/io.h"
#include "base/rel_path.h"
#include "session/files/text_encoding.h"

namespace sandglass::session::files {
namespace {

constexpr size_t kChunkBytes = 256 << 10;

struct OpenFile {
  Fd fd;
  FileVersion version;
};

Result<OpenFile> AsRegularFile(Fd fd, std::string_view path) {
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return Error::FromErrno(errno, fmt::format("stat {}", path));
  if (S_ISDIR(st.st_mode))
    return Error(Code::kInvalid, fmt::format("{} is a folder; list it instead", path), EISDIR);
  if (!S_ISREG(st.st_mode))
    return Error(Code::kInvalid, fmt::format("{} is no regular file", path));
  return OpenFile{std::move(fd), VersionOf(st)};
}

Result<size_t> ReadAt(int fd, uint64_t offset, size_t size, std::string& out) {
  out.resize(size);
  TRY_ASSIGN(const size_t got, PReadFully(fd, {reinterpret_cast<uint8_t*>(out.data()), size},
                                          static_cast<off_t>(offset)));
  out.resize(got);
  return got;
}

Result<ContentKind> KindOf(int fd) {
  std::string beginning;
  TRY(ReadAt(fd, 0, 8 << 10, beginning));
  return LooksBinary(beginning) ? ContentKind::kBinary : ContentKind::kText;
}

Result<FileContent> ReadBytes(const OpenFile& file, const ByteRange& range, size_t max_bytes) {
  FileContent content{.offset = range.offset, .version = file.version};
  if (range.offset > static_cast<uint64_t>(INT64_MAX) - max_bytes)
    return Error(Code::kInvalid, "an offset that no file can have");
  const uint64_t wanted = std::min<uint64_t>(range.count.value_or(max_bytes), max_bytes);
  // No buffer larger than the file, and one byte more, which tells whether something is left.
  const uint64_t left =
      file.version.size > range.offset ? file.version.size - range.offset : kChunkBytes;
  TRY(ReadAt(file.fd.get(), range.offset, std::min(wanted, left) + 1, content.bytes));
  content.at_end = content.bytes.size() <= wanted && content.bytes.size() <= left;
  content.bytes.resize(std::min<size_t>(content.bytes.size(), wanted));
  content.next_offset = range.offset + content.bytes.size();
  return content;
}

// Goes through a file in chunks; finds where a line begins and takes lines from there.
class LineReader {
 public:
  LineReader(int fd, const LineRange& range, size_t max_bytes)
      : fd_(fd), range_(range), max_bytes_(max_bytes) {}

  Status Run(FileContent& content) {
    content.first_line = range_.first;
    std::string chunk;
    uint64_t offset = 0;
    while (!done_) {
      TRY_ASSIGN(const size_t got, ReadAt(fd_, offset, kChunkBytes, chunk));
      if (got == 0) break;
      Take(chunk, offset, content);
      offset += got;
    }
    if (line_ < range_.first) content.offset = offset;
    content.at_end = !done_;
    content.next_offset = content.offset + content.bytes.size();
    content.next_line = line_;
    return Ok();
  }

 private:
  void Take(std::string_view chunk, uint64_t offset, FileContent& content) {
    size_t at = 0;
    while (at < chunk.size() && !done_) {
      if (line_ == range_.first && content.bytes.empty()) content.offset = offset + at;
      const bool wanted = line_ >= range_.first;
      if (wanted && range_.count && line_ - range_.first >= *range_.count) {
        done_ = true;
        return;
      }
      const size_t brk = chunk.find('\n', at);
      const size_t end = brk == std::string_view::npos ? chunk.size() : brk + 1;
      if (wanted) Append(chunk.substr(at, end - at), content);
      if (done_) return;
      if (brk != std::string_view::npos) ++line_;
      at = end;
    }
  }

  // A line that does not fit is left for the next page, unless the page is empty: then it is cut.
  void Append(std::string_view part, FileContent& content) {
    const size_t room = max_bytes_ - content.bytes.size();
    if (part.size() <= room) {
      content.bytes.append(part);
      return;
    }
    done_ = true;
    const size_t line_begin = content.bytes.rfind('\n') + 1;  // npos + 1 is 0
    if (line_begin > 0)
      content.bytes.resize(line_begin);
    else
      content.bytes.append(part.substr(0, room));
  }

  const int fd_;
  const LineRange& range_;
  const size_t max_bytes_;
  uint64_t line_ = 1;  // the one that comes next
  bool done_ = false;
};

Result<FileContent> ReadLines(const OpenFile& file, const LineRange& range, size_t max_bytes) {
  if (range.first == 0) return Error(Code::kInvalid, "lines are counted from 1");
  FileContent content{.version = file.version};
  TRY(LineReader(file.fd.get(), range, max_bytes).Run(content));
  return content;
}

}  // namespace

Result<FileContent> ReadFile(int root_fd, const ReadRequest& request) {
  TRY_ASSIGN(const std::string path, NormalizeRelPath(request.path));
  TRY_ASSIGN(Fd fd, OpenFollowing(root_fd, path, O_RDONLY));
  TRY_ASSIGN(const OpenFile file, AsRegularFile(std::move(fd), path));
  const auto* lines = std::get_if<LineRange>(&request.range);
  TRY_ASSIGN(FileContent content,
             lines != nullptr
                 ? ReadLines(file, *lines, request.max_bytes)
                 : ReadBytes(file, std::get<ByteRange>(request.range), request.max_bytes));
  TRY_ASSIGN(content.kind, KindOf(file.fd.get()));
  return content;
}

Result<FileContent> ReadWholeFile(int root_fd, std::string_view path, size_t max_bytes) {
  TRY_ASSIGN(const std::string normal, NormalizeRelPath(path));
  TRY_ASSIGN(Fd fd, OpenBeneath(root_fd, normal, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  TRY_ASSIGN(const OpenFile file, AsRegularFile(std::move(fd), normal));
  auto bytes = ReadFully(file.fd.get(), max_bytes);
  if (!bytes.ok()) return bytes.error().WithContext(normal);
  FileContent content{.bytes = std::string(AsText(*bytes)), .at_end = true};
  content.version = file.version;
  content.next_offset = content.bytes.size();
  content.kind = LooksBinary(content.bytes) ? ContentKind::kBinary : ContentKind::kText;
  return content;
}

}  // namespace sandglass::session::files
