// Writes the seed corpus of undo_journal_fuzz into a folder: make_undo_journal_corpus
// fuzz/corpus/undo_journal
//
// Everything comes from the real encoders, so that a change of format changes the seeds. Names of
// seeds say what they hold.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/result.h"
#include "fuzz/undo_journal_input.h"
#include "undo/journal_format.h"
#include "undo/pack.h"
#include "undo/record.h"

namespace sandglass::fuzz {
namespace {

using undo::Record;
using Records = std::vector<Record>;

constexpr undo::ObjectId kRoot{1, 1}, kFile{2, 7}, kOther{3, 7}, kDir{4, 9}, kFresh{5, 9};
constexpr undo::OpSeq Seq(uint32_t value) { return {value}; }

undo::NameAt In(std::string_view dir, std::string_view name) {
  return {.parent = dir.empty() ? kRoot : kDir, .dir = dir, .name = name};
}

undo::Metadata Meta(uint32_t mode) {
  return {.mode = mode,
          .uid = 1000,
          .gid = 1000,
          .size = 12,
          .blocks = 8,
          .mtime_ns = 1'700'000'000'123'456'789};
}

undo::MetaRecord Touch(undo::ObjectId object, std::string_view path, uint32_t mode) {
  return {.object = object, .reason = undo::TouchReason::kDirect, .path = path, .meta = Meta(mode)};
}

undo::MetaRecord TouchWithXattrs() {
  undo::MetaRecord record = Touch(kFile, "src/main.cc", S_IFREG | 0644);
  record.meta.xattrs = {
      {"security.capability", std::string(20, '\0')}, {"user.note", "kept"}, {"user.none", ""}};
  return record;
}

undo::MetaRecord TouchSymlink() {
  undo::MetaRecord record = Touch(kOther, "latest", S_IFLNK | 0777);
  record.meta.symlink_target = "releases/2";
  return record;
}

undo::ContentRecord Content(undo::Keeping keeping, uint64_t where) {
  return {.object = kFile,
          .path = "src/main.cc",
          .keeping = keeping,
          .whole = keeping != undo::Keeping::kPack,
          .sparse = true,
          .file_size = 12,
          .offset = 4,
          .length = 8,
          .where = where,
          .checksum = 0x1234};
}

undo::CreateRecord Create(uint32_t seq, const undo::NameAt& at, uint32_t mode,
                          undo::Birth birth = undo::Birth::kNew) {
  return {.seq = Seq(seq),
          .at = at,
          .birth = birth,
          .mode = mode,
          .object = birth == undo::Birth::kNew ? undo::kNoObject : kFile,
          .origin = {3}};
}

undo::RemoveRecord Remove(uint32_t seq, const undo::NameAt& at, undo::ObjectId object,
                          undo::Kept kept) {
  return {.seq = Seq(seq),
          .at = at,
          .object = object,
          .mode = S_IFREG | 0644,
          .kept = kept,
          .anchor = {1},
          .nlink = 2,
          .rdev = 0,
          .symlink_target = kept == undo::Kept::kContent ? "elsewhere" : ""};
}

undo::RenameRecord Rename(uint32_t seq, const undo::NameAt& from, const undo::NameAt& to,
                          uint32_t mode) {
  return {.seq = Seq(seq),
          .from = from,
          .to = to,
          .exchange = 0,
          .object = S_ISDIR(mode) ? kDir : kFile,
          .mode = mode,
          .target = undo::kNoObject,
          .target_mode = 0,
          .target_kept = undo::Kept::kNothing,
          .anchor = {},
          .target_symlink = {},
          .target_rdev = 0};
}

undo::RenameRecord RenameOver(uint32_t seq) {
  undo::RenameRecord record = Rename(seq, In("src", "new"), In("src", "old"), S_IFREG | 0644);
  record.target = kOther;
  record.target_mode = S_IFREG | 0600;
  record.target_kept = undo::Kept::kAnchor;
  record.anchor = {2};
  return record;
}

undo::RenameRecord Exchange(uint32_t seq, uint32_t mode) {
  undo::RenameRecord record = Rename(seq, In("", "a"), In("", "b"), mode);
  record.exchange = 1;
  record.target = kOther;
  return record;
}

undo::ReplaceRecord Replace(uint32_t seq, uint8_t returned) {
  return {.seq = Seq(seq),
          .at = In("src", "main.cc"),
          .old_object = kFile,
          .fresh_object = kFresh,
          .anchor = {4},
          .returned = returned,
          .origin = {5}};
}

undo::OutcomeRecord Done(uint32_t seq, undo::ObjectId object = undo::kNoObject) {
  return {.seq = Seq(seq), .sys_errno = 0, .object = object};
}
undo::OutcomeRecord Failed(uint32_t seq) {
  return {.seq = Seq(seq), .sys_errno = EACCES, .object = undo::kNoObject};
}

undo::AfterRecord After(undo::ObjectId object, uint64_t size) {
  return {.object = object, .size = size};
}

undo::CloseRecord Close() {
  return {.closed_ns = 1'700'000'001'000'000'000,
          .protection = undo::Protection::kFull,
          .counts = {.created = 1, .modified = 1},
          .copied_bytes = 12,
          .retained_bytes = 4096,
          .shared_anchors = 1};
}

Bytes Encoded(const Record& record) {
  ByteWriter out;
  CHECK(undo::EncodeRecord(record, out).ok());
  return out.bytes();
}

// --- The four forms.

Bytes Start(JournalInput kind) { return {static_cast<uint8_t>(kind)}; }
void Append(Bytes& to, ByteView bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

Bytes Sealed(const std::vector<Bytes>& payloads, undo::StepKind kind = undo::StepKind::kCommand) {
  constexpr std::string_view kLabel = "make";
  ByteWriter out;
  out.PutBytes(Start(JournalInput::kSealedJournal));
  out.Put(kind);
  out.Put(static_cast<uint8_t>(kLabel.size()));
  out.PutBytes(AsBytes(kLabel));
  for (const Bytes& payload : payloads) {
    out.Put(static_cast<uint16_t>(payload.size()));
    out.PutBytes(payload);
  }
  return out.bytes();
}

Bytes Sealed(const Records& records, undo::StepKind kind = undo::StepKind::kCommand) {
  std::vector<Bytes> payloads;
  for (const Record& record : records) payloads.push_back(Encoded(record));
  return Sealed(payloads, kind);
}

Bytes Page(const undo::JournalHeader& header) {
  Bytes page(undo::kJournalHeaderBytes);
  undo::EncodeJournalHeader(header, page);
  return page;
}

Bytes Raw(const undo::JournalHeader& header, const Records& records) {
  ByteWriter out;
  out.PutBytes(Start(JournalInput::kRawJournal));
  out.PutBytes(Page(header));
  for (const Record& record : records) {
    const Bytes payload = Encoded(record);
    out.Put(static_cast<uint32_t>(payload.size()));
    out.Put(undo::FrameChecksum(payload));
    out.PutBytes(payload);
    out.PutBytes(Bytes(undo::FrameBytes(payload.size()) - undo::kFrameHeadBytes - payload.size()));
  }
  return out.bytes();
}

Bytes RawPack(uint64_t frames_end, const undo::PackIndex& index) {
  ByteWriter out;
  out.PutBytes(Start(JournalInput::kRawPack));
  out.Put(frames_end);
  out.PutBytes(index.Encode());
  return out.bytes();
}

Bytes SealedPack(const undo::PackIndex& index) {
  ByteWriter out;
  out.PutBytes(Start(JournalInput::kSealedPack));
  out.Put(index.raw_bytes);
  for (const uint64_t end : index.ends) out.Put(end);
  return out.bytes();
}

// --- Damage.

Bytes Cut(Bytes bytes, size_t from_end) {
  bytes.resize(bytes.size() - from_end);
  return bytes;
}
Bytes Flip(Bytes bytes, size_t at, uint8_t bits = 1) {
  bytes.at(at) ^= bits;
  return bytes;
}
// Positions in a raw journal, behind the first byte that selects it.
constexpr size_t HeaderAt(size_t offset) { return 1 + offset; }
constexpr size_t FirstFrameAt(size_t offset) { return 1 + undo::kJournalHeaderBytes + offset; }

undo::JournalHeader Header() {
  return {.id = {7},
          .kind = undo::StepKind::kCommand,
          .order = 9,
          .uid = 77,
          .opened_ns = 1'700'000'000'000'000'000,
          .label = "make -j2 all"};
}

struct Seed {
  std::string name;
  Bytes bytes;
};
using Seeds = std::vector<Seed>;

// Each type alone: a decoder's first test.
void AddSingleRecords(Seeds& seeds) {
  const std::vector<std::pair<std::string, Record>> records = {
      {"meta", Touch(kFile, "src/main.cc", S_IFREG | 0644)},
      {"meta_xattrs", TouchWithXattrs()},
      {"meta_symlink", TouchSymlink()},
      {"mark", undo::MarkRecord{kFile, "src/main.cc"}},
      {"content_pack", Content(undo::Keeping::kPack, 4096)},
      {"content_blob", Content(undo::Keeping::kBlob, 2)},
      {"content_clone", Content(undo::Keeping::kClone, 3)},
      {"drop", undo::DropRecord{kFile, {2}}},
      {"create", Create(0, In("src", "new.cc"), S_IFREG)},
      {"create_link", Create(0, In("src", "again.cc"), S_IFREG, undo::Birth::kLink)},
      {"create_returned", Create(0, In("", "back"), S_IFREG, undo::Birth::kReturned)},
      {"remove_anchor", Remove(0, In("src", "main.cc"), kFile, undo::Kept::kAnchor)},
      {"remove_content", Remove(0, In("", "link"), kOther, undo::Kept::kContent)},
      {"remove_directory", Remove(0, In("", "src"), kDir, undo::Kept::kDirectory)},
      {"rename", Rename(0, In("src", "a"), In("lib", "b"), S_IFREG)},
      {"rename_over", RenameOver(0)},
      {"exchange", Exchange(0, S_IFREG)},
      {"replace", Replace(0, 0)},
      {"outcome", Done(0, kFresh)},
      {"close", Close()},
      {"unprotected", undo::UnprotectedRecord{"the step copied more than 200 MiB"}},
      {"after", After(kFile, 34)},
  };
  for (const auto& [name, record] : records)
    seeds.push_back({"record_" + name, Sealed(Records{record})});
}

// Records that only mean something together.
void AddSteps(Seeds& seeds) {
  seeds.push_back({"step_create",
                   Sealed(Records{Touch(kRoot, "", S_IFDIR | 0755), Create(0, In("", "a"), S_IFREG),
                                  Done(0, kFresh), After(kFresh, 5), Close()})});
  seeds.push_back({"step_failed",
                   Sealed(Records{Create(0, In("", "a"), S_IFREG), Failed(0),
                                  Remove(1, In("", "b"), kFile, undo::Kept::kAnchor), Failed(1),
                                  RenameOver(2), Failed(2), Replace(3, 0), Failed(3), Close()})});
  seeds.push_back({"step_modify",
                   Sealed(Records{Touch(kFile, "src/main.cc", S_IFREG | 0644),
                                  Content(undo::Keeping::kPack, 0), After(kFile, 99), Close()})});
  seeds.push_back({"step_dropped_copy", Sealed(Records{Touch(kFile, "src/main.cc", S_IFREG | 0644),
                                                       Content(undo::Keeping::kBlob, 2),
                                                       undo::DropRecord{kFile, {2}}, Close()})});
  seeds.push_back(
      {"step_delete",
       Sealed(Records{Touch(kFile, "src/main.cc", S_IFREG | 0644),
                      Remove(0, In("src", "main.cc"), kFile, undo::Kept::kAnchor), Done(0),
                      Remove(1, In("", "src"), kDir, undo::Kept::kDirectory), Done(1), Close()})});
  seeds.push_back(
      {"step_rename_folder",
       Sealed(Records{Touch(kFile, "src/a/main.cc", S_IFREG | 0644),
                      undo::MarkRecord{kFile, "src/a/main.cc"},
                      Rename(0, In("", "src"), In("", "lib"), S_IFDIR), Done(0),
                      Create(1, In("lib/a", "x"), S_IFREG), Done(1, kFresh),
                      Rename(2, In("", "lib"), In("lib/a", "lib"), S_IFDIR), Close()})});
  seeds.push_back({"step_exchange_folders",
                   Sealed(Records{undo::MarkRecord{kFile, "a/x"}, undo::MarkRecord{kOther, "b/y"},
                                  Exchange(0, S_IFDIR), Done(0), Exchange(1, S_IFDIR), Close()})});
  seeds.push_back(
      {"step_replace", Sealed(Records{Touch(kFile, "src/main.cc", S_IFREG | 0644), Replace(0, 0),
                                      Done(0), Replace(1, 1), Done(1), Close()})});
  seeds.push_back(
      {"step_link_and_rename", Sealed(Records{Create(0, In("", "l"), S_IFREG, undo::Birth::kLink),
                                              Done(0), RenameOver(1), Done(1), Close()})});
  seeds.push_back({"step_outcome_of_nothing",
                   Sealed(Records{Done(4'000'000'000, kFile), Done(0, kFile), Close()})});
  seeds.push_back({"step_ambient", Sealed(Records{undo::UnprotectedRecord{"why"}, Close()},
                                          undo::StepKind::kAmbient)});
  seeds.push_back(
      {"step_without_end", Sealed(Records{Create(0, In("", "a"), S_IFREG)}, undo::StepKind::kApi)});
}

// Payloads with a right checksum that are no records.
void AddWrongPayloads(Seeds& seeds) {
  const Bytes meta = Encoded(TouchWithXattrs());
  const Bytes content = Encoded(Content(undo::Keeping::kPack, 0));
  constexpr size_t kTypeAt = 0, kReasonAt = 17;
  const size_t keeping_at =
      1 + sizeof(undo::ObjectId) + sizeof(uint32_t) + std::string_view("src/main.cc").size();
  seeds.push_back({"wrong_type", Sealed({Flip(meta, kTypeAt, 0x80), Encoded(Close())})});
  seeds.push_back({"wrong_enum", Sealed({Flip(meta, kReasonAt, 0x40)})});
  seeds.push_back({"wrong_bool", Sealed({Flip(content, keeping_at + 1, 0x02)})});
  seeds.push_back({"wrong_keeping", Sealed({Flip(content, keeping_at, 0x08)})});
  seeds.push_back({"wrong_text_length", Sealed({Flip(meta, kReasonAt + 4, 0x80)})});
  seeds.push_back({"wrong_empty_payload", Sealed({Bytes{}, meta})});
  Bytes longer = meta;
  longer.push_back(0);
  seeds.push_back({"wrong_tail", Sealed({longer, meta})});
}

// Every record type, cut at many places: where a field may end too early.
void AddCuts(Seeds& seeds) {
  const std::vector<std::pair<std::string, Record>> records = {
      {"meta", TouchWithXattrs()},
      {"content", Content(undo::Keeping::kPack, 0)},
      {"rename", RenameOver(0)},
      {"remove", Remove(0, In("a", "b"), kFile, undo::Kept::kContent)},
      {"create", Create(0, In("a", "b"), S_IFREG)},
      {"replace", Replace(0, 0)},
      {"close", Close()},
      {"outcome", Done(0)},
      {"drop", undo::DropRecord{}},
      {"mark", undo::MarkRecord{kFile, "p"}},
      {"after", undo::AfterRecord{}},
      {"unprotected", undo::UnprotectedRecord{"w"}},
  };
  constexpr size_t kMostCuts = 64;
  for (const auto& [name, record] : records) {
    const Bytes payload = Encoded(record);
    std::vector<Bytes> cuts;
    for (size_t size = 1; size < payload.size(); size += 1 + payload.size() / kMostCuts) {
      cuts.push_back(Cut(payload, size));
    }
    seeds.push_back({"cut_" + name, Sealed(cuts)});
  }
}

Bytes TooManyXattrs() {
  Bytes payload = Encoded(Touch(kFile, "f", S_IFREG));
  payload[payload.size() - 3] = 0x20;  // the count stands last: 8192
  return payload;
}

void AddRawJournals(Seeds& seeds) {
  const Records records = {Touch(kRoot, "", S_IFDIR | 0755), Create(0, In("", "a"), S_IFREG),
                           Done(0, kFresh), Close()};
  const Bytes good = Raw(Header(), records);
  undo::JournalHeader rewind = Header();
  rewind.kind = undo::StepKind::kApi;
  rewind.reverses_uid = 76;
  rewind.label.clear();
  undo::JournalHeader ambient = Header();
  ambient.id = {-3};
  ambient.kind = undo::StepKind::kAmbient;
  ambient.label = std::string(undo::kMaxLabelBytes + 100, '\xff');
  seeds.push_back({"raw_whole", good});
  seeds.push_back({"raw_rewind", Raw(rewind, records)});
  seeds.push_back({"raw_ambient_long_label", Raw(ambient, {})});
  Bytes unfinished = good;
  Append(unfinished, Bytes(64));
  seeds.push_back({"raw_unused_space", unfinished});
  seeds.push_back({"raw_torn_tail", Cut(good, 20)});
  seeds.push_back(
      {"raw_torn_frame_head", Cut(Raw(Header(), {Close()}), Encoded(Close()).size() + 4)});
  seeds.push_back({"raw_only_header", Cut(Raw(Header(), {}), 0)});
  seeds.push_back({"raw_short_header", Bytes(good.begin(), good.begin() + 300)});
  seeds.push_back({"raw_wrong_magic", Flip(good, HeaderAt(0))});
  seeds.push_back(
      {"raw_other_version", Flip(good, HeaderAt(offsetof(undo::RawJournalHeader, format)), 2)});
  seeds.push_back(
      {"raw_wrong_kind", Flip(good, HeaderAt(offsetof(undo::RawJournalHeader, kind)), 0x10)});
  seeds.push_back(
      {"raw_long_label", Flip(good, HeaderAt(offsetof(undo::RawJournalHeader, label_bytes) + 2))});
  seeds.push_back({"raw_flipped_label", Flip(good, HeaderAt(513))});
  seeds.push_back(
      {"raw_flipped_checksum", Flip(good, HeaderAt(offsetof(undo::RawJournalHeader, checksum)))});
  seeds.push_back({"raw_flipped_heartbeat",
                   Flip(good, HeaderAt(offsetof(undo::RawJournalHeader, heartbeat_ns)))});
  seeds.push_back({"raw_flipped_payload", Flip(good, FirstFrameAt(12))});
  seeds.push_back({"raw_flipped_frame_checksum", Flip(good, FirstFrameAt(4))});
  seeds.push_back({"raw_huge_length", Flip(good, FirstFrameAt(3), 0x80)});
  seeds.push_back({"raw_wrong_length", Flip(good, FirstFrameAt(0), 0x08)});
  seeds.push_back({"raw_too_many_xattrs", Sealed({TooManyXattrs()})});
}

void AddPacks(Seeds& seeds) {
  const undo::PackIndex index{.raw_bytes = undo::kPackChunkBytes * 2 + 5, .ends = {100, 220, 230}};
  const Bytes good = RawPack(230, index);
  seeds.push_back({"pack_empty", RawPack(0, {})});
  seeds.push_back({"pack_three_chunks", good});
  seeds.push_back({"pack_other_frames_end", RawPack(231, index)});
  seeds.push_back({"pack_short", Cut(good, good.size() - 20)});
  seeds.push_back({"pack_cut", Cut(good, 1)});
  seeds.push_back({"pack_flipped_end", Flip(good, 10)});
  seeds.push_back({"pack_flipped_raw_size", Flip(good, 9 + 3 * 8 + 3)});
  seeds.push_back({"pack_flipped_count", Flip(good, 9 + 3 * 8 + 8)});
  seeds.push_back({"pack_flipped_magic", Flip(good, good.size() - 2)});
  seeds.push_back({"pack_sealed", SealedPack(index)});
  seeds.push_back({"pack_sealed_descending",
                   SealedPack({.raw_bytes = undo::kPackChunkBytes * 2, .ends = {200, 100}})});
  seeds.push_back({"pack_sealed_wrong_count", SealedPack({.raw_bytes = 1, .ends = {50, 100}})});
  seeds.push_back({"pack_sealed_wrapping_size",
                   SealedPack({.raw_bytes = std::numeric_limits<uint64_t>::max(), .ends = {}})});
}

Status WriteSeeds(const char* folder) {
  Fd dir(::open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir.valid()) return Error::FromErrno(errno, fmt::format("open {}", folder));
  Seeds seeds;
  for (const auto& add :
       {AddSingleRecords, AddSteps, AddWrongPayloads, AddCuts, AddRawJournals, AddPacks})
    add(seeds);
  seeds.push_back({"nothing", {}});
  for (const Seed& seed : seeds) {
    CHECK(seed.bytes.size() <= kMaxInputBytes);
    Fd file(::openat(dir.get(), seed.name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!file.valid()) return Error::FromErrno(errno, fmt::format("create {}", seed.name));
    TRY(WriteFully(file.get(), seed.bytes));
  }
  fmt::print("{} seeds\n", seeds.size());
  return Ok();
}

}  // namespace
}  // namespace sandglass::fuzz

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_undo_journal_corpus FOLDER\n", stderr);
    return 2;
  }
  const auto written = sandglass::fuzz::WriteSeeds(argv[1]);
  if (!written.ok()) std::fprintf(stderr, "%s\n", written.error().ToString().c_str());
  return written.ok() ? 0 : 1;
}
