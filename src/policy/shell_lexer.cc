#include "policy/shell_lexer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace sandglass::policy {
namespace {

constexpr std::string_view kBlank = " \t\r";
// Words that stand where a command could, and behind which one can.
constexpr std::string_view kReserved[] = {
    "if", "then", "elif", "else", "fi",  "while",  "until", "do",       "done", "{", "}",
    "!",  "time", "case", "esac", "for", "select", "in",    "function", "[[",   "]]"};

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// NAME=..., which stands before a command.
bool IsAssignment(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  std::string_view name = text.substr(0, equals);
  if (name.ends_with('+')) name.remove_suffix(1);
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
         std::ranges::all_of(name, IsNameCharacter);
}

struct Operator {
  std::string_view text;
  enum class Does : uint8_t { kSeparates, kPipes, kOpens, kCloses } does;
};
// The longest first.
constexpr Operator kOperators[] = {
    {";;&", Operator::Does::kSeparates}, {"&&", Operator::Does::kSeparates},
    {"||", Operator::Does::kSeparates},  {";;", Operator::Does::kSeparates},
    {";&", Operator::Does::kSeparates},  {"|&", Operator::Does::kPipes},
    {"|", Operator::Does::kPipes},       {";", Operator::Does::kSeparates},
    {"&", Operator::Does::kSeparates},   {"\n", Operator::Does::kSeparates},
    {"(", Operator::Does::kOpens},       {")", Operator::Does::kCloses},
};

struct RedirectOperator {
  std::string_view text;
  RedirectKind kind;
};
constexpr RedirectOperator kRedirects[] = {
    {"<<<", RedirectKind::kRead},     {"<<-", RedirectKind::kHereDocument},
    {"&>>", RedirectKind::kAppend},   {"<<", RedirectKind::kHereDocument},
    {">>", RedirectKind::kAppend},    {"&>", RedirectKind::kWrite},
    {">|", RedirectKind::kWrite},     {"<>", RedirectKind::kWrite},
    {">&", RedirectKind::kDuplicate}, {"<&", RedirectKind::kDuplicate},
    {">", RedirectKind::kWrite},      {"<", RedirectKind::kRead},
};

class Reader {
 public:
  Reader(std::string_view text, ShellText& out, int depth)
      : text_(text), out_(out), depth_(depth) {}

  void Run() {
    if (depth_ > kDeepestSubstitution) {
      out_.complete = false;
      return;
    }
    pipeline_ = NextPipeline();
    while (at_ < text_.size() && out_.commands.size() < kMostCommands) TakeOne();
    EndCommand();
    if (at_ < text_.size()) out_.complete = false;
  }

 private:
  bool Sees(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  void TakeOne() {
    const char c = text_[at_];
    if (kBlank.find(c) != std::string_view::npos) {
      ++at_;
    } else if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
      at_ += 2;
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (!TakeRedirect() && !TakeOperator()) {
      AddWord(TakeWord());
    }
  }

  // --- Operators

  bool TakeOperator() {
    const auto* found =
        std::ranges::find_if(kOperators, [&](const Operator& op) { return Sees(op.text); });
    if (found == std::end(kOperators)) return false;
    at_ += found->text.size();
    // Without a word before it a line break only goes on.
    if (found->text != "\n") out_.has_operators = true;
    if (found->does == Operator::Does::kOpens) NoteFunction();
    EndCommand();
    if (found->does != Operator::Does::kPipes) pipeline_ = NextPipeline();
    if (found->text == "\n") SkipHereDocuments();
    return true;
  }

  // `name ()`: what follows is its body.
  void NoteFunction() {
    if (command_.words.size() != 1) return;
    size_t next = at_;
    while (next < text_.size() && kBlank.find(text_[next]) != std::string_view::npos) ++next;
    if (next >= text_.size() || text_[next] != ')') return;
    out_.functions.push_back(command_.words[0].text);
    command_.words.clear();
    at_ = next + 1;
  }

  size_t NextPipeline() const {
    return out_.commands.empty() ? 0 : out_.commands.back().pipeline + 1;
  }

  void EndCommand() {
    const bool empty =
        command_.words.empty() && command_.assignments.empty() && command_.redirects.empty();
    if (!empty) {
      command_.pipeline = pipeline_;
      command_.depth = depth_;
      out_.commands.push_back(std::move(command_));
    }
    command_ = {};
  }

  // --- Redirections

  bool TakeRedirect() {
    size_t at = at_;
    while (at < text_.size() && text_[at] >= '0' && text_[at] <= '9') ++at;  // 2>
    const std::string_view rest = text_.substr(at);
    // Process substitutions are words.
    if (rest.starts_with("<(") || rest.starts_with(">(")) return false;
    const auto* found = std::ranges::find_if(
        kRedirects, [&](const RedirectOperator& op) { return rest.starts_with(op.text); });
    if (found == std::end(kRedirects)) return false;
    at_ = at + found->text.size();
    while (at_ < text_.size() && kBlank.find(text_[at_]) != std::string_view::npos) ++at_;
    Redirect redirect{found->kind, TakeWord()};
    if (redirect.kind == RedirectKind::kDuplicate && !IsDescriptor(redirect.target.text))
      redirect.kind = RedirectKind::kWrite;  // >& file
    if (redirect.kind == RedirectKind::kHereDocument)
      documents_.push_back({redirect.target, found->text == "<<-"});
    out_.has_operators = true;
    command_.redirects.push_back(std::move(redirect));
    return true;
  }

  static bool IsDescriptor(std::string_view text) {
    return !text.empty() &&
           std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || c == '-'; });
  }

  struct HereDocument {
    Word end;
    bool tabs;  // before its lines do not count
  };

  void SkipHereDocuments() {
    for (const HereDocument& document : std::exchange(documents_, {})) SkipHereDocument(document);
  }

  // Behind the line of its operator. What it substitutes is run, unless its end is quoted.
  void SkipHereDocument(const HereDocument& document) {
    const size_t begin = at_;
    size_t body_end = text_.size();
    while (at_ < text_.size()) {
      const size_t end = std::min(text_.find('\n', at_), text_.size());
      std::string_view line = text_.substr(at_, end - at_);
      if (document.tabs) line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
      body_end = at_;
      at_ = std::min(end + 1, text_.size());
      if (line == document.end.text) break;
      body_end = text_.size();
    }
    if (!document.end.quoted) FindSubstitutions(text_.substr(begin, body_end - begin));
  }

  void FindSubstitutions(std::string_view body) {
    ShellText nested;
    Reader reader(body, nested, depth_);
    Word unused;
    while (reader.at_ < body.size()) reader.TakeInDouble(unused);
    Adopt(std::move(nested));
  }

  // --- Words

  void AddWord(Word word) {
    if (command_.words.empty()) {
      if (word.kind == WordKind::kPlain && !word.quoted &&
          std::ranges::find(kReserved, word.text) != std::end(kReserved))
        return TakeReserved(word.text);
      if (IsAssignment(word.text)) {
        command_.assignments.push_back(std::move(word.text));
        return;
      }
    }
    command_.words.push_back(std::move(word));
  }

  // `for x in a b` and `case x in` name no program up to the end of the line; `function f` defines one.
  void TakeReserved(std::string_view word) {
    constexpr std::string_view kHeads[] = {"for", "select", "case", "[["};
    out_.has_operators = true;
    if (word == "function") {
      SkipBlank();
      out_.functions.push_back(TakeWord().text);
      return;
    }
    if (std::ranges::find(kHeads, word) == std::end(kHeads)) return;
    for (SkipBlank(); !AtHeadEnd(); SkipBlank()) {
      const size_t before = at_;
      if (TakeWord().text == "in" && word == "case") return;
      if (at_ == before) ++at_;  // an operator within it
    }
  }

  bool AtHeadEnd() const {
    return at_ >= text_.size() || Sees(";") || Sees("\n") || Sees("&&") || Sees("||");
  }

  void SkipBlank() {
    while (at_ < text_.size() && kBlank.find(text_[at_]) != std::string_view::npos) ++at_;
  }

  Word TakeWord() {
    Word word;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool process = Sees("<(") || Sees(">(");
      constexpr std::string_view kEnds = " \t\r\n;&|<>()";
      if (!process && kEnds.find(c) != std::string_view::npos) break;
      if (process)
        TakeSubstitution(word, 2);
      else
        TakePart(word);
    }
    // Alone it is the name of a command.
    if (word.text == "[" || word.text == "[[") word.kind = WordKind::kPlain;
    return word;
  }

  void TakePart(Word& word) {
    switch (text_[at_]) {
      case '\'':
        return TakeSingle(word);
      case '"':
        return TakeDouble(word);
      case '\\':
        return TakeBackslash(word);
      case '$':
        return TakeDollar(word);
      case '`':
        return TakeBackquote(word);
      case '*':
      case '?':
      case '[':
        word.kind = WordKind::kExpanded;
        break;
      default:
        break;
    }
    // Only at its beginning another home, or a user's.
    if (text_[at_] == '~' && word.text.empty() && !word.quoted) word.kind = WordKind::kExpanded;
    word.text.push_back(text_[at_++]);
  }

  void TakeSingle(Word& word) {
    word.quoted = true;
    const size_t end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) return Unfinished(word);
    word.text += text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
  }

  void TakeDouble(Word& word) {
    word.quoted = true;
    ++at_;
    while (at_ < text_.size() && text_[at_] != '"') TakeInDouble(word);
    if (at_ >= text_.size()) return Unfinished(word);
    ++at_;
  }

  // One character or substitution, as between double quotes.
  void TakeInDouble(Word& word) {
    const char c = text_[at_];
    if (c == '$') return TakeDollar(word);
    if (c == '`') return TakeBackquote(word);
    if (c == '\\' && at_ + 1 < text_.size()) {
      constexpr std::string_view kEscaped = "$`\"\\\n";
      if (kEscaped.find(text_[at_ + 1]) != std::string_view::npos) return TakeBackslash(word);
    }
    word.text.push_back(c);
    ++at_;
  }

  void TakeBackslash(Word& word) {
    word.quoted = true;
    if (++at_ >= text_.size()) return Unfinished(word);
    if (text_[at_] != '\n') word.text.push_back(text_[at_]);
    ++at_;
  }

  void TakeDollar(Word& word) {
    if (Sees("$(") && !Sees("$((")) return TakeSubstitution(word, 2);
    if (Sees("$'")) {
      // With escapes of its own, so that what it says is not what stands there.
      ++at_;
      word.kind = WordKind::kExpanded;
      return TakeAnsi(word);
    }
    const bool expands =
        at_ + 1 < text_.size() &&
        (IsNameCharacter(text_[at_ + 1]) ||
         std::string_view("{(@*#?$!-").find(text_[at_ + 1]) != std::string_view::npos);
    if (expands) word.kind = WordKind::kExpanded;
    // Deeper ones are taken as they stand: nobody writes them, and each level costs stack.
    if (nesting_ < kDeepestSubstitution && (Sees("${") || Sees("$(("))) {
      ++nesting_;
      Sees("${") ? TakeBraced(word) : TakeArithmetic(word);
      --nesting_;
      return;
    }
    word.text.push_back(text_[at_++]);
  }

  void TakeAnsi(Word& word) {
    word.quoted = true;
    ++at_;
    while (at_ < text_.size() && text_[at_] != '\'') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) word.text.push_back(text_[at_++]);
      word.text.push_back(text_[at_++]);
    }
    if (at_ >= text_.size()) return Unfinished(word);
    ++at_;
  }

  // ${x:-$(cmd)}: substitutions in it are run.
  void TakeBraced(Word& word) {
    word.text += "${";
    at_ += 2;
    while (at_ < text_.size() && text_[at_] != '}') TakeInDouble(word);
    if (at_ >= text_.size()) return Unfinished(word);
    word.text.push_back(text_[at_++]);
  }

  void TakeArithmetic(Word& word) {
    const size_t begin = at_;
    const size_t end = text_.find("))", at_);
    if (end == std::string_view::npos) return Unfinished(word);
    at_ += 3;
    Word inside;
    while (at_ < end) TakeInDouble(inside);
    at_ = std::max(at_, end + 2);
    at_ = std::min(at_, text_.size());
    word.text += text_.substr(begin, at_ - begin);
  }

  // $(...), <(...), >(...): `opening` is the size of what opens it.
  void TakeSubstitution(Word& word, size_t opening) {
    const size_t begin = at_;
    at_ += opening;
    const size_t inside = at_;
    const auto end = FindClosing();
    if (!end) return Unfinished(word);
    Nested(text_.substr(inside, *end - inside));
    at_ = *end + 1;
    word.kind = WordKind::kExpanded;
    word.text += text_.substr(begin, at_ - begin);
  }

  // The parenthesis that closes what is open at `at_`, past quotes and others.
  std::optional<size_t> FindClosing() const {
    int open = 1;
    char quote = '\0';
    for (size_t i = at_; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c == '\\' && quote != '\'') {
        ++i;
      } else if (quote != '\0') {
        if (c == quote) quote = '\0';
      } else if (c == '\'' || c == '"') {
        quote = c;
      } else if (c == '(') {
        ++open;
      } else if (c == ')' && --open == 0) {
        return i;
      }
    }
    return std::nullopt;
  }

  void TakeBackquote(Word& word) {
    const size_t begin = at_++;
    std::string inside;
    while (at_ < text_.size() && text_[at_] != '`') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      inside.push_back(text_[at_++]);
    }
    if (at_ >= text_.size()) return Unfinished(word);
    ++at_;
    Nested(inside);
    word.kind = WordKind::kExpanded;
    word.text += text_.substr(begin, at_ - begin);
  }

  // What is left is taken as it stands.
  void Unfinished(Word& word) {
    out_.complete = false;
    word.kind = WordKind::kExpanded;
    word.text += text_.substr(std::min(at_, text_.size()));
    at_ = text_.size();
  }

  void Nested(std::string_view text) {
    ShellText nested;
    Reader(text, nested, depth_ + 1).Run();
    Adopt(std::move(nested));
  }

  void Adopt(ShellText nested) {
    const size_t base = std::max(NextPipeline(), pipeline_ + 1);
    for (SimpleCommand& command : nested.commands) {
      if (out_.commands.size() >= kMostCommands) break;
      command.pipeline += base;
      out_.commands.push_back(std::move(command));
    }
    std::ranges::move(nested.functions, std::back_inserter(out_.functions));
    out_.complete = out_.complete && nested.complete;
    out_.has_operators = true;
  }

  const std::string_view text_;
  ShellText& out_;
  const int depth_;
  size_t at_ = 0;
  size_t pipeline_ = 0;
  int nesting_ = 0;  // of ${ and $((
  SimpleCommand command_;
  std::vector<HereDocument> documents_;
};

}  // namespace

ShellText ReadShell(std::string_view text) {
  ShellText out;
  if (text.size() > kMostShellBytes) {
    out.complete = false;
    text = text.substr(0, kMostShellBytes);
  }
  Reader(text, out, 0).Run();
  return out;
}

}  // namespace sandglass::policy
