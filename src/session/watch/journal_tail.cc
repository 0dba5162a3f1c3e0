#include "session/watch/journal_tail.h"

#include <fcntl.h>

#include <array>
#include <cstring>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/hash.h"
#include "base/io.h"
#include "base/rel_path.h"
#include "undo/journal_format.h"
#include "undo/place.h"

namespace sandglass::session {
namespace {

constexpr size_t kPieceBytes = size_t{256} << 10;

// How much room the frame at the beginning of the bytes says that it takes; 0: there is none.
size_t FrameAtFront(ByteView bytes) {
  uint32_t payload = 0;
  if (bytes.size() < undo::kFrameHeadBytes) return 0;
  std::memcpy(&payload, bytes.data(), sizeof(payload));
  return payload == 0 || payload > undo::kMaxRecordBytes ? 0 : undo::FrameBytes(payload);
}

}  // namespace

Result<JournalTail> JournalTail::Open(int wal_fd, const char* folder) {
  TRY_ASSIGN(const Fd dir, undo::OpenSubdir(wal_fd, folder));
  TRY_ASSIGN(Fd file, undo::OpenStoreFile(dir.get(), "journal", O_RDONLY));
  std::array<uint8_t, undo::kJournalHeaderBytes> page{};
  TRY_ASSIGN(const size_t got, PReadFully(file.get(), page, 0));
  TRY_ASSIGN(const auto decoded, undo::DecodeJournalHeader(ByteView(page).first(got)));
  JournalTail tail(std::move(file), decoded.header.uid);
  tail.end_ = undo::kJournalHeaderBytes;
  return tail;
}

Status JournalTail::CatchUp() {
  Bytes piece(kPieceBytes);
  while (true) {
    TRY_ASSIGN(const size_t got, PReadFully(file_.get(), piece, static_cast<off_t>(end_)));
    const ByteView bytes = ByteView(piece).first(got);
    const size_t taken = TakeFrames(bytes);
    end_ += taken;
    if (taken > 0) continue;
    const size_t wanted = FrameAtFront(bytes);
    if (wanted <= piece.size() || got < piece.size()) return Ok();
    piece.resize(wanted);
  }
}

size_t JournalTail::TakeFrames(ByteView bytes) {
  size_t at = 0;
  while (true) {
    const size_t frame = FrameAtFront(bytes.subspan(at));
    if (frame == 0 || frame > bytes.size() - at) return at;
    const auto record = undo::DecodeFrame(bytes, at);
    if (!record.ok()) return at;
    Take(*record);
    at += frame;
  }
}

void JournalTail::Touch(std::string_view path) { paths_.insert(HashBytes64(AsBytes(path))); }

void JournalTail::Touch(const undo::NameAt& at) {
  const std::string path = JoinPath(at.dir, at.name);
  Touch(path);
  names_.insert(HashBytes64(AsBytes(path)));
}

bool JournalTail::HasReplacedAbove(std::string_view path) const {
  while (!path.empty()) {
    path = ParentOf(path);
    if (names_.contains(HashBytes64(AsBytes(path)))) return true;
  }
  return false;
}

bool JournalTail::HasTouched(std::string_view path) const {
  return paths_.contains(HashBytes64(AsBytes(path)));
}

void JournalTail::Take(const undo::Record& record) {
  std::visit(
      [this](const auto& r) {
        using T = std::decay_t<decltype(r)>;
        if constexpr (requires { r.object; }) Touch(r.object);
        if constexpr (requires { r.path; }) Touch(r.path);
        if constexpr (requires { r.at; }) Touch(r.at);
        if constexpr (std::is_same_v<T, undo::RenameRecord>) {
          Touch(r.from);
          Touch(r.to);
          Touch(r.target);
        }
        if constexpr (std::is_same_v<T, undo::ReplaceRecord>) {
          Touch(r.old_object);
          Touch(r.fresh_object);
        }
      },
      record);
}

}  // namespace sandglass::session
