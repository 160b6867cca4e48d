#include "data/convert/csv.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace muster::data {
namespace {

class Parser {
 public:
  explicit Parser(absl::string_view text) : rest_(text) {
    absl::ConsumePrefix(&rest_, "\xef\xbb\xbf");
  }

  absl::StatusOr<std::vector<CsvRow>> Parse() {
    std::vector<CsvRow> rows;
    while (!rest_.empty()) {
      CsvRow row{.line = line_};
      bool more = true;
      while (more) {
        std::string cell;
        MUSTER_ASSIGN_OR_RETURN(more, Cell(cell));
        row.cells.push_back(std::move(cell));
      }
      if (row.cells.size() > 1 || !row.cells[0].empty()) rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  // Reads one cell and its terminator. Returns whether the row continues.
  absl::StatusOr<bool> Cell(std::string& cell) {
    if (!rest_.empty() && rest_[0] == '"') {
      MUSTER_RETURN_IF_ERROR(Quoted(cell));
    } else {
      const size_t end = rest_.find_first_of(",\r\n");
      cell = std::string(rest_.substr(0, end));
      rest_.remove_prefix(cell.size());
    }
    if (absl::ConsumePrefix(&rest_, ",")) return true;
    absl::ConsumePrefix(&rest_, "\r");
    if (absl::ConsumePrefix(&rest_, "\n")) {
      ++line_;
      return false;
    }
    ++line_;  // a carriage return alone, or the end
    return false;
  }

  absl::Status Quoted(std::string& cell) {
    const int64_t begin = line_;
    rest_.remove_prefix(1);
    for (;;) {
      const size_t quote = rest_.find('"');
      if (quote == absl::string_view::npos) {
        return absl::InvalidArgumentError(
            absl::StrCat("line ", begin, ": a quoted value is not closed"));
      }
      const absl::string_view piece = rest_.substr(0, quote);
      for (const char byte : piece) line_ += byte == '\n' ? 1 : 0;
      cell.append(piece.data(), piece.size());
      rest_.remove_prefix(quote + 1);
      if (!absl::ConsumePrefix(&rest_, "\"")) break;
      cell.push_back('"');
    }
    if (rest_.empty() || rest_[0] == ',' || rest_[0] == '\r' || rest_[0] == '\n') {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("line ", line_, ": unexpected text after a quoted value"));
  }

  absl::string_view rest_;
  int64_t line_ = 1;
};

}  // namespace

absl::StatusOr<std::vector<CsvRow>> ParseCsv(absl::string_view text) {
  return Parser(text).Parse();
}

}  // namespace muster::data
