// The host's part that finds files and lines of the working directories. A search has the session's thread until it ends, as every
// look at the disk has; its workers are gone when it does.
#include <algorithm>
#include <utility>

#include "api/command_output.h"
#include "api/host.h"
#include "api/limits.h"
#include "api/project_files.h"
#include "session/files/glob.h"
#include "session/files/grep.h"

namespace sandglass::api {
namespace {

namespace files = session::files;

bool IsTrue(const Json& payload, std::string_view key) {
  const Json* flag = payload.Find(key);
  return flag != nullptr && *flag->AsBool();
}

size_t SizeOr(const Json& payload, std::string_view key, size_t otherwise) {
  const Json* given = payload.Find(key);
  return given != nullptr ? static_cast<size_t>(*given->AsUint()) : otherwise;
}

bool Is(const Json& payload, std::string_view key, std::string_view value) {
  const Json* given = payload.Find(key);
  return given != nullptr && *given->AsString() == value;
}

files::Hidden HiddenOf(const Json& payload) {
  return IsTrue(payload, "include_hidden") ? files::Hidden::kInclude : files::Hidden::kSkip;
}
files::IgnoreRules IgnoreOf(const Json& payload) {
  return IsTrue(payload, "include_ignored") ? files::IgnoreRules::kDisregard
                                            : files::IgnoreRules::kRespect;
}

std::string_view NameOf(undo::NodeType type) {
  switch (type) {
    case undo::NodeType::kFile:
      return "file";
    case undo::NodeType::kDirectory:
      return "directory";
    case undo::NodeType::kSymlink:
      return "symlink";
    case undo::NodeType::kFifo:
      return "fifo";
    case undo::NodeType::kSocket:
      return "socket";
    case undo::NodeType::kCharDevice:
    case undo::NodeType::kBlockDevice:
      return "device";
  }
  return "device";
}

Result<Json> Found(const std::string& directory, const std::string& folder, const Json& payload) {
  TRY_ASSIGN(const Fd root, OpenDirectory(directory));
  const files::GlobRequest request{.pattern = *payload.Find("pattern")->AsString(),
                                   .folder = folder,
                                   .hidden = HiddenOf(payload),
                                   .ignore = IgnoreOf(payload),
                                   .order = Is(payload, "order", "name")
                                                ? files::GlobOrder::kName
                                                : files::GlobOrder::kNewestFirst,
                                   .offset = SizeOr(payload, "offset", 0),
                                   .limit = SizeOr(payload, "limit", kDefaultFound)};
  TRY_ASSIGN(const files::GlobResult result, files::Glob(root.get(), request));
  Json matches = Json::Array();
  for (const files::GlobMatch& match : result.matches)
    matches.Append(Json::Object({{"path", BytesToJson(match.path)},
                                 {"type", NameOf(match.type)},
                                 {"size", match.size},
                                 {"modified", FormatTimestamp({match.mtime_ns})}}));
  return Json::Object({{"matches", std::move(matches)}, {"total", result.total}});
}

// --- grep

files::GrepMode ModeOf(const Json& payload) {
  if (Is(payload, "mode", "files")) return files::GrepMode::kFilesWithMatches;
  return Is(payload, "mode", "count") ? files::GrepMode::kCount : files::GrepMode::kContent;
}

files::LinePattern PatternOf(const Json& payload) {
  return {.text = *payload.Find("pattern")->AsString(),
          .kind = IsTrue(payload, "literal") ? files::PatternKind::kLiteral
                                             : files::PatternKind::kExpression,
          .letter_case = IsTrue(payload, "ignore_case") ? files::LetterCase::kInsensitive
                                                        : files::LetterCase::kSensitive};
}

std::vector<std::string> GlobsOf(const Json& payload) {
  std::vector<std::string> globs;
  if (const Json* given = payload.Find("globs")) {
    for (const Json& glob : *given->AsArray()) globs.push_back(*glob.AsString());
  }
  return globs;
}

std::optional<files::GrepCursor> CursorOf(const Json& payload) {
  const Json* given = payload.Find("cursor");
  if (given == nullptr) return std::nullopt;
  return files::GrepCursor{BytesFromJson(*given->Find("path")).value(),
                           *given->Find("line")->AsUint()};
}

// The lines as far as an answer has room for them; what is cut off begins the next page.
class GrepPage {
 public:
  explicit GrepPage(files::GrepMode mode) : mode_(mode) {}

  // False: the page is full.
  bool Add(const files::GrepFile& file) {
    Json lines = Json::Array();
    uint64_t matches = 0;
    bool fits = true;
    for (const files::GrepLine& line : file.lines) {
      bytes_ += line.text.size();
      fits = bytes_ <= kMaxFoundBytes;
      if (!fits) break;
      const bool is_match = line.kind == files::LineKind::kMatch;
      lines.Append(Json::Object(
          {{"line", line.number}, {"text", BytesToJson(line.text)}, {"match", is_match}}));
      if (!is_match) continue;
      ++matches;
      last_ = files::GrepCursor{file.path, line.number};
    }
    if (!fits && matches == 0) return false;
    Json json = Json::Object(
        {{"path", BytesToJson(file.path)}, {"matches", lines_wanted() ? matches : file.matches}});
    if (lines_wanted()) json.Set("lines", std::move(lines));
    files_.Append(std::move(json));
    return fits;
  }

  Json Finish(const std::optional<files::GrepCursor>& next) {
    Json cursor;
    if (next) cursor = Json::Object({{"path", BytesToJson(next->path)}, {"line", next->line}});
    return Json::Object({{"files", std::move(files_)}, {"next", std::move(cursor)}});
  }
  const std::optional<files::GrepCursor>& last() const { return last_; }

 private:
  bool lines_wanted() const { return mode_ == files::GrepMode::kContent; }

  const files::GrepMode mode_;
  Json files_ = Json::Array();
  size_t bytes_ = 0;
  std::optional<files::GrepCursor> last_;
};

Result<Json> Searched(const std::string& directory, const std::string& path, const Json& payload) {
  TRY_ASSIGN(const Fd root, OpenDirectory(directory));
  const std::vector<std::string> globs = GlobsOf(payload);
  const files::GrepRequest request{.pattern = PatternOf(payload),
                                   .path = path,
                                   .globs = globs,
                                   .mode = ModeOf(payload),
                                   .before = SizeOr(payload, "before", 0),
                                   .after = SizeOr(payload, "after", 0),
                                   .hidden = HiddenOf(payload),
                                   .ignore = IgnoreOf(payload),
                                   .limit = SizeOr(payload, "limit", kDefaultFound),
                                   .after_page = CursorOf(payload)};
  TRY_ASSIGN(const files::GrepResult result, files::Grep(root.get(), request));
  GrepPage page(request.mode);
  for (const files::GrepFile& file : result.files) {
    if (!page.Add(file)) return page.Finish(page.last());
  }
  return page.Finish(result.next);
}

Answer AnswerFor(Result<Json> result) {
  if (!result.ok()) return FromError(result.error());
  return std::move(*result);
}

}  // namespace

void Host::FindFiles(Call call) {
  const auto target = TargetOf(call.payload);
  if (!target.ok()) return call.reply(FromError(target.error()));
  call.reply(AnswerFor(Found(target->directory, target->path, call.payload)));
}

void Host::SearchFiles(Call call) {
  const auto target = TargetOf(call.payload);
  if (!target.ok()) return call.reply(FromError(target.error()));
  call.reply(AnswerFor(Searched(target->directory, target->path, call.payload)));
}

}  // namespace sandglass::api
