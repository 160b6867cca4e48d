// Reads a CSV table as examples.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "base/terminal_text.h"
#include "data/convert.h"
#include "data/csv.h"
#include "data/example.h"

namespace muster::data {
namespace {

constexpr int64_t kMaxCsv = int64_t{2} << 30;
constexpr size_t kMaxClassNames = 10'000;

std::optional<float> AsNumber(absl::string_view cell) {
  float value = 0;
  if (!absl::SimpleAtof(cell, &value) || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<int64_t> AsWhole(absl::string_view cell) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(cell, &value)) return std::nullopt;
  return value;
}

// The content of the label's column.
enum class LabelKind { kWhole, kNumber, kText };

class Csv : public ExampleSource {
 public:
  Csv(std::string path, std::vector<CsvRow> rows)
      : path_(std::move(path)), rows_(std::move(rows)) {}

  // Analyzes the table: its header, the label's column, the kind of labels.
  absl::Status Prepare(const std::string& label) {
    if (rows_.empty()) return Mistake(1, "the file has no lines");
    columns_ = rows_[0].cells.size();
    TakeHeader();
    if (rows_.empty()) return Mistake(1, "there is a header, but no row of values");
    if (columns_ < 2)
      return Mistake(1, "there is only one column; expected a label and at least one feature");
    for (const CsvRow& row : rows_) {
      if (row.cells.size() == columns_) continue;
      return Mistake(row.line, absl::StrCat("has ", row.cells.size(),
                                            " values, the first line has ", columns_));
    }
    MUSTER_RETURN_IF_ERROR(FindLabel(label));
    return ClassifyLabels();
  }

  int64_t size() const override { return static_cast<int64_t>(rows_.size()); }
  std::vector<std::string> class_names() const override { return classes_; }

  std::vector<std::string> LabelsBeyond(const std::vector<std::string>& classes) const override {
    const std::set<std::string> known(classes.begin(), classes.end());
    std::set<std::string> beyond;
    for (const CsvRow& row : rows_) {
      const std::string& cell = row.cells[label_];
      if (!known.contains(cell)) beyond.insert(cell);
      if (beyond.size() > kMaxClassNames) break;
    }
    return {beyond.begin(), beyond.end()};
  }

  void UseClasses(const std::vector<std::string>& classes) override {
    kind_ = LabelKind::kText;
    classes_ = classes;
    numbers_.clear();
    for (size_t i = 0; i < classes.size(); ++i) numbers_[classes[i]] = static_cast<int64_t>(i);
  }

  absl::StatusOr<std::string> Example(int64_t index) override {
    const CsvRow& row = rows_[static_cast<size_t>(index)];
    std::vector<float> values;
    for (size_t column = 0; column < columns_; ++column) {
      if (column == label_) continue;
      const auto value = AsNumber(row.cells[column]);
      if (!value) {
        return Mistake(row.line,
                       absl::StrCat(NameOf(column), " is '", row.cells[column],
                                    "', which is not a number; features must be numbers: ",
                                    "remove the column, or encode it as numbers"));
      }
      values.push_back(*value);
    }
    builder_.AddFloats("features", values);
    AddLabel(row.cells[label_]);
    return builder_.Finish();
  }

  std::string features() const override {
    return absl::StrCat("{features: {type: float, shape: [", columns_ - 1,
                        "]}, label: ", kind_ == LabelKind::kNumber ? "float" : "int64", "}");
  }

  std::string note() const override {
    std::vector<std::string> names;
    for (size_t column = 0; column < columns_; ++column) {
      if (column != label_) names.push_back(NameOf(column));
    }
    return absl::StrCat("'features' are ", absl::StrJoin(names, ", "), "; 'label' is ",
                        NameOf(label_));
  }

 private:
  // A first line without any number is a header.
  void TakeHeader() {
    const std::vector<std::string>& cells = rows_[0].cells;
    const bool is_header = std::none_of(cells.begin(), cells.end(), [](const std::string& cell) {
      return cell.empty() || AsNumber(cell).has_value();
    });
    if (!is_header) return;
    for (const std::string& cell : cells) {
      header_.emplace_back(absl::StripAsciiWhitespace(cell));
    }
    rows_.erase(rows_.begin());
  }

  absl::Status FindLabel(const std::string& wanted) {
    label_ = columns_ - 1;
    if (!wanted.empty()) {
      const auto found = std::find(header_.begin(), header_.end(), wanted);
      if (found == header_.end()) {
        return Mistake(1, header_.empty()
                              ? "the file has no header, so --label cannot select a column; "
                                "without it the last column is the label"
                              : absl::StrCat("there is no column '", wanted, "'",
                                             DidYouMean(wanted, header_)));
      }
      label_ = static_cast<size_t>(found - header_.begin());
      return absl::OkStatus();
    }
    const std::set<std::string> usual = {"label", "target", "class", "y"};
    for (size_t column = 0; column < header_.size(); ++column) {
      if (usual.count(absl::AsciiStrToLower(header_[column])) > 0) label_ = column;
    }
    return absl::OkStatus();
  }

  absl::Status ClassifyLabels() {
    kind_ = LabelKind::kWhole;
    std::set<std::string> names;
    for (const CsvRow& row : rows_) {
      const std::string& cell = row.cells[label_];
      if (cell.empty()) return Mistake(row.line, absl::StrCat(NameOf(label_), " is empty"));
      if (kind_ == LabelKind::kWhole && !AsWhole(cell)) kind_ = LabelKind::kNumber;
      if (kind_ == LabelKind::kNumber && !AsNumber(cell)) kind_ = LabelKind::kText;
      if (names.size() <= kMaxClassNames) names.insert(cell);
    }
    if (kind_ != LabelKind::kText) return absl::OkStatus();
    if (names.size() > kMaxClassNames) {
      return Mistake(1, absl::StrCat(NameOf(label_), " has more than ", kMaxClassNames,
                                     " different texts, too many for classes; select another "
                                     "column with --label"));
    }
    UseClasses({names.begin(), names.end()});
    return absl::OkStatus();
  }

  void AddLabel(const std::string& cell) {
    if (kind_ == LabelKind::kNumber) {
      builder_.AddFloats("label", {AsNumber(cell).value_or(0)});
    } else if (kind_ == LabelKind::kWhole) {
      builder_.AddInts("label", {AsWhole(cell).value_or(0)});
    } else {
      builder_.AddInts("label", {numbers_[cell]});
      builder_.AddBytes("class", cell);
    }
  }

  std::string NameOf(size_t column) const {
    if (header_.empty()) return absl::StrCat("column ", column + 1);
    return absl::StrCat("'", header_[column], "'");
  }

  absl::Status Mistake(int64_t line, absl::string_view text) const {
    return absl::InvalidArgumentError(Printable(absl::StrCat(path_, ", line ", line, ": ", text)));
  }

  std::string path_;
  std::vector<CsvRow> rows_;
  std::vector<std::string> header_;
  size_t columns_ = 0;
  size_t label_ = 0;
  LabelKind kind_ = LabelKind::kWhole;
  std::vector<std::string> classes_;
  std::map<std::string, int64_t> numbers_;  // of classes
  ExampleBuilder builder_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ExampleSource>> CsvSource(const std::string& path,
                                                         const std::string& label) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxCsv));
  auto rows = ParseCsv(text);
  if (!rows.ok()) return Annotate(rows.status(), path);
  auto csv = std::make_unique<Csv>(path, *std::move(rows));
  MUSTER_RETURN_IF_ERROR(csv->Prepare(label));
  return csv;
}

}  // namespace muster::data
