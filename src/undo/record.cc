#include "undo/record.h"

#include <fmt/format.h>

#include <type_traits>

#include "base/rel_path.h"

namespace sandglass::undo {
namespace {

// Both sides ask the same questions: a record that only the writer accepts would be damage to every reader, and all behind it lost.
constexpr const char* kTooManyXattrs = "too many extended attributes";
Status CheckSize(size_t size, size_t max, const char* what) {
  return size <= max ? Ok() : Status(Error(Code::kCorrupt, fmt::format("{} in a record", what)));
}
Status CheckPath(std::string_view path) {
  return IsNormalRelPath(path) ? Ok() : Status(Error(Code::kCorrupt, "no path of the project"));
}
Status CheckName(std::string_view name) {
  return IsName(name) ? Ok() : Status(Error(Code::kCorrupt, "no name in a record"));
}

// One table of fields per record type: Visit() names each field once, and both the encoder and the decoder walk it, so that they
// cannot disagree.
template <class Codec>
Status Visit(Codec& codec, NameAt& at) {
  TRY(codec.Pod(at.parent));
  TRY(codec.Path(at.dir));
  return codec.Name(at.name);
}

template <class Codec>
Status Visit(Codec& codec, Metadata& meta) {
  TRY(codec.Pod(meta.mode));
  TRY(codec.Pod(meta.uid));
  TRY(codec.Pod(meta.gid));
  TRY(codec.Pod(meta.flags));
  TRY(codec.Pod(meta.size));
  TRY(codec.Pod(meta.blocks));
  TRY(codec.Pod(meta.rdev));
  TRY(codec.Pod(meta.mtime_ns));
  TRY(codec.Pod(meta.ctime_ns));
  TRY(codec.OwnedText(meta.symlink_target, kMaxPathBytes));
  return codec.Xattrs(meta.xattrs);
}

template <class Codec>
Status Visit(Codec& codec, MetaRecord& r) {
  TRY(codec.Pod(r.object));
  TRY(codec.Enum(r.reason, TouchReason::kContent));
  TRY(codec.Path(r.path));
  return Visit(codec, r.meta);
}

template <class Codec>
Status Visit(Codec& codec, MarkRecord& r) {
  TRY(codec.Pod(r.object));
  return codec.Path(r.path);
}

template <class Codec>
Status Visit(Codec& codec, ContentRecord& r) {
  TRY(codec.Pod(r.object));
  TRY(codec.Path(r.path));
  TRY(codec.Enum(r.keeping, Keeping::kClone));
  TRY(codec.Bool(r.whole));
  TRY(codec.Bool(r.sparse));
  TRY(codec.Pod(r.file_size));
  TRY(codec.Pod(r.offset));
  TRY(codec.Pod(r.length));
  TRY(codec.Pod(r.where));
  return codec.Pod(r.checksum);
}

template <class Codec>
Status Visit(Codec& codec, DropRecord& r) {
  TRY(codec.Pod(r.object));
  return codec.Pod(r.blob);
}

template <class Codec>
Status Visit(Codec& codec, CreateRecord& r) {
  TRY(codec.Pod(r.seq));
  TRY(Visit(codec, r.at));
  TRY(codec.Enum(r.birth, Birth::kReturned));
  TRY(codec.Pod(r.mode));
  TRY(codec.Pod(r.object));
  return codec.Pod(r.origin);
}

template <class Codec>
Status Visit(Codec& codec, RemoveRecord& r) {
  TRY(codec.Pod(r.seq));
  TRY(Visit(codec, r.at));
  TRY(codec.Pod(r.object));
  TRY(codec.Pod(r.mode));
  TRY(codec.Enum(r.kept, Kept::kDirectory));
  TRY(codec.Pod(r.anchor));
  TRY(codec.Pod(r.nlink));
  TRY(codec.Pod(r.rdev));
  return codec.Text(r.symlink_target);
}

template <class Codec>
Status Visit(Codec& codec, RenameRecord& r) {
  TRY(codec.Pod(r.seq));
  TRY(Visit(codec, r.from));
  TRY(Visit(codec, r.to));
  TRY(codec.Pod(r.exchange));
  TRY(codec.Pod(r.object));
  TRY(codec.Pod(r.mode));
  TRY(codec.Pod(r.target));
  TRY(codec.Pod(r.target_mode));
  TRY(codec.Enum(r.target_kept, Kept::kDirectory));
  TRY(codec.Pod(r.anchor));
  TRY(codec.Text(r.target_symlink));
  return codec.Pod(r.target_rdev);
}

template <class Codec>
Status Visit(Codec& codec, ReplaceRecord& r) {
  TRY(codec.Pod(r.seq));
  TRY(Visit(codec, r.at));
  TRY(codec.Pod(r.old_object));
  TRY(codec.Pod(r.fresh_object));
  TRY(codec.Pod(r.anchor));
  TRY(codec.Pod(r.returned));
  return codec.Pod(r.origin);
}

template <class Codec>
Status Visit(Codec& codec, OutcomeRecord& r) {
  TRY(codec.Pod(r.seq));
  TRY(codec.Pod(r.sys_errno));
  return codec.Pod(r.object);
}

template <class Codec>
Status Visit(Codec& codec, CloseRecord& r) {
  TRY(codec.Pod(r.closed_ns));
  TRY(codec.Enum(r.protection, Protection::kUnprotected));
  TRY(codec.Pod(r.counts));
  TRY(codec.Pod(r.copied_bytes));
  TRY(codec.Pod(r.retained_bytes));
  return codec.Pod(r.shared_anchors);
}

template <class Codec>
Status Visit(Codec& codec, UnprotectedRecord& r) {
  return codec.Text(r.why);
}

template <class Codec>
Status Visit(Codec& codec, AfterRecord& r) {
  TRY(codec.Pod(r.object));
  TRY(codec.Pod(r.size));
  TRY(codec.Pod(r.mtime_ns));
  TRY(codec.Pod(r.ctime_ns));
  TRY(codec.Pod(r.mode));
  TRY(codec.Pod(r.uid));
  return codec.Pod(r.gid);
}

class Encoder {
 public:
  explicit Encoder(ByteWriter& out) : out_(out) {}

  template <class T>
  Status Pod(T& value) {
    out_.Put(value);
    return Ok();
  }
  template <class T>
  Status Enum(T& value, T /*last*/) {
    return Pod(value);
  }
  Status Bool(bool& value) {
    out_.Put(static_cast<uint8_t>(value));
    return Ok();
  }
  Status Text(std::string_view& text) { return Put(text, kMaxPathBytes); }
  Status Path(std::string_view& path) {
    TRY(CheckPath(path));
    return Text(path);
  }
  Status Name(std::string_view& name) {
    TRY(CheckName(name));
    return Text(name);
  }
  Status OwnedText(std::string& text, size_t max) { return Put(text, max); }
  Status Xattrs(std::vector<std::pair<std::string, std::string>>& xattrs) {
    TRY(CheckSize(xattrs.size(), kMaxXattrs, kTooManyXattrs));
    out_.Put(static_cast<uint32_t>(xattrs.size()));
    for (auto& [name, value] : xattrs) {
      TRY(Put(name, kMaxXattrName));
      TRY(Put(value, kMaxXattrValue));
    }
    return Ok();
  }

 private:
  Status Put(std::string_view text, size_t max) {
    TRY(CheckSize(text.size(), max, "a text too long"));
    out_.PutText(text);
    return Ok();
  }

  ByteWriter& out_;
};

class Decoder {
 public:
  explicit Decoder(ByteCursor& in) : in_(in) {}

  template <class T>
  Status Pod(T& value) {
    TRY_ASSIGN(value, in_.Take<T>());
    return Ok();
  }
  template <class T>
  Status Enum(T& value, T last) {
    using Raw = std::underlying_type_t<T>;
    TRY_ASSIGN(Raw raw, in_.Take<Raw>());
    if (raw > static_cast<Raw>(last)) return Error(Code::kCorrupt, "unknown value in a record");
    value = static_cast<T>(raw);
    return Ok();
  }
  Status Bool(bool& value) {
    TRY_ASSIGN(uint8_t raw, in_.Take<uint8_t>());
    if (raw > 1) return Error(Code::kCorrupt, "unknown value in a record");
    value = raw == 1;
    return Ok();
  }
  Status Text(std::string_view& text) {
    TRY_ASSIGN(text, in_.TakeText(kMaxPathBytes));
    return Ok();
  }
  // A journal that leads out of the project has been tampered with.
  Status Path(std::string_view& path) {
    TRY(Text(path));
    return CheckPath(path);
  }
  Status Name(std::string_view& name) {
    TRY(Text(name));
    return CheckName(name);
  }
  Status OwnedText(std::string& text, size_t max) {
    TRY_ASSIGN(std::string_view view, in_.TakeText(max));
    text.assign(view);
    return Ok();
  }
  Status Xattrs(std::vector<std::pair<std::string, std::string>>& xattrs) {
    TRY_ASSIGN(uint32_t count, in_.Take<uint32_t>());
    TRY(CheckSize(count, kMaxXattrs, kTooManyXattrs));
    for (uint32_t i = 0; i < count; ++i) {
      std::string name, value;
      TRY(OwnedText(name, kMaxXattrName));
      TRY(OwnedText(value, kMaxXattrValue));
      xattrs.emplace_back(std::move(name), std::move(value));
    }
    return Ok();
  }

 private:
  ByteCursor& in_;
};

// The record's number on disk is its place in the variant: append new ones at the end.
template <size_t kIndex = 0>
Result<Record> DecodeAlternative(uint8_t type, ByteCursor& in) {
  if constexpr (kIndex == std::variant_size_v<Record>) {
    return Error(Code::kCorrupt, "unknown record type");
  } else {
    if (type != kIndex) return DecodeAlternative<kIndex + 1>(type, in);
    std::variant_alternative_t<kIndex, Record> record{};
    Decoder decoder(in);
    TRY(Visit(decoder, record));
    if (!in.empty()) return Error(Code::kCorrupt, "record is longer than its fields");
    return Record(std::move(record));
  }
}

}  // namespace

Status EncodeRecord(const Record& record, ByteWriter& out) {
  const size_t start = out.bytes().size();
  out.Put(static_cast<uint8_t>(record.index()));
  Encoder encoder(out);
  // The encoder only reads; Visit() takes references because the decoder writes through the same table.
  Status encoded = std::visit(
      [&](const auto& r) { return Visit(encoder, const_cast<std::decay_t<decltype(r)>&>(r)); },
      record);
  if (encoded.ok())
    encoded = CheckSize(out.bytes().size() - start, kMaxRecordBytes, "too many bytes");
  if (encoded.ok()) return Ok();
  return Error(Code::kNotRestorable,
               fmt::format("undo cannot record this: {}", encoded.error().message()));
}

Result<Record> DecodeRecord(ByteView payload) {
  ByteCursor in(payload);
  TRY_ASSIGN(uint8_t type, in.Take<uint8_t>());
  return DecodeAlternative(type, in);
}

}  // namespace sandglass::undo
