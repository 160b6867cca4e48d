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
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/suggest.h"
#include "base/text/terminal_text.h"
#include "data/convert/convert.h"
#include "data/convert/csv.h"
#include "data/tfrecord/example.h"

namespace muster::data {
namespace {

// The whole table is held in memory, as text.
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

  // Analyzes the table: its header, the columns to use, the kind of labels.
  absl::Status Prepare(const CsvColumns& columns) {
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
    MUSTER_RETURN_IF_ERROR(FindLabel(columns.label));
    MUSTER_RETURN_IF_ERROR(FindFeatures(columns));
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
    for (size_t i = 0; i < features_.size(); ++i) {
      MUSTER_ASSIGN_OR_RETURN(const float value, Feature(row, features_[i]));
      if (scales_.empty()) {
        values.push_back(value);
      } else {
        values.push_back(
            static_cast<float>((double{value} - scales_[i].mean) / scales_[i].deviation));
      }
    }
    builder_.AddFloats("features", values);
    AddLabel(row.cells[label_]);
    return builder_.Finish();
  }

  std::string features() const override {
    return absl::StrCat("{features: {type: float, shape: [", features_.size(),
                        "]}, label: ", kind_ == LabelKind::kNumber ? "float" : "int64", "}");
  }

  std::string note() const override {
    std::vector<std::string> names;
    for (const size_t column : features_) names.push_back(NameOf(column));
    return absl::StrCat("'features' are ", absl::StrJoin(names, ", "), "; 'label' is ",
                        NameOf(label_));
  }

  absl::StatusOr<std::vector<FeatureScale>> ComputeScales(
      const std::vector<int64_t>* indices) override {
    std::vector<FeatureScale> scales;
    for (const size_t column : features_) {
      // Welford's method, which is stable for values that are large beside their deviation.
      double mean = 0, squares = 0;
      int64_t count = 0;
      const int64_t rows = indices == nullptr ? size() : static_cast<int64_t>(indices->size());
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t row = indices == nullptr ? i : (*indices)[static_cast<size_t>(i)];
        MUSTER_ASSIGN_OR_RETURN(const double value,
                                Feature(rows_[static_cast<size_t>(row)], column));
        const double before = value - mean;
        mean += before / static_cast<double>(++count);
        squares += before * (value - mean);
      }
      const double deviation = std::sqrt(squares / static_cast<double>(count));
      // A constant feature becomes 0.
      scales.push_back({ColumnId(column), mean, deviation > 0 ? deviation : 1});
    }
    return scales;
  }

  absl::Status UseScales(const std::vector<FeatureScale>& scales) override {
    std::vector<std::string> given, own;
    for (const FeatureScale& scale : scales) given.push_back(scale.column);
    for (const size_t column : features_) own.push_back(ColumnId(column));
    if (given != own) {
      return Mistake(
          1, absl::StrCat("the features are ", absl::StrJoin(own, ", "),
                          ", but the folder was normalized with ", absl::StrJoin(given, ", "),
                          "; select these with --columns, or use another folder"));
    }
    scales_ = scales;
    return absl::OkStatus();
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

  // Returns the column of that name or, in a file without a header, of that number from 1.
  absl::StatusOr<size_t> FindColumn(const char* option, const std::string& wanted) const {
    if (header_.empty()) {
      size_t number = 0;
      if (absl::SimpleAtoi(wanted, &number) && number >= 1 && number <= columns_) return number - 1;
      return Mistake(1, absl::StrCat("the file has no header, so ", option,
                                     " takes numbers of columns, from 1 to ", columns_, ", not '",
                                     wanted, "'"));
    }
    const auto found = std::find(header_.begin(), header_.end(), wanted);
    if (found != header_.end()) return static_cast<size_t>(found - header_.begin());
    return Mistake(1, absl::StrCat(option, ": there is no column '", wanted, "'",
                                   base::DidYouMean(wanted, header_)));
  }

  absl::Status FindFeatures(const CsvColumns& wanted) {
    std::set<size_t> dropped = {label_};
    for (const std::string& name : wanted.drop) {
      MUSTER_ASSIGN_OR_RETURN(const size_t column, FindColumn("--drop", name));
      if (column == label_) {
        return Mistake(1, absl::StrCat("--drop: ", NameOf(column),
                                       " is the label; select another one with --label"));
      }
      dropped.insert(column);
    }
    for (const std::string& name : wanted.keep) {
      MUSTER_ASSIGN_OR_RETURN(const size_t column, FindColumn("--columns", name));
      if (column == label_) continue;  // it is kept in any case
      const bool twice = std::find(features_.begin(), features_.end(), column) != features_.end();
      if (twice) return Mistake(1, absl::StrCat("--columns: ", NameOf(column), " is named twice"));
      features_.push_back(column);
    }
    for (size_t column = 0; wanted.keep.empty() && column < columns_; ++column) {
      if (!dropped.contains(column)) features_.push_back(column);
    }
    if (!features_.empty()) return absl::OkStatus();
    return Mistake(1, "no column is left for features");
  }

  absl::Status FindLabel(const std::string& wanted) {
    label_ = columns_ - 1;
    if (!wanted.empty()) {
      MUSTER_ASSIGN_OR_RETURN(label_, FindColumn("--label", wanted));
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

  // Returns the number in a cell. Errors name the line and the column.
  absl::StatusOr<float> Feature(const CsvRow& row, size_t column) const {
    if (const auto value = AsNumber(row.cells[column])) return *value;
    return Mistake(row.line, absl::StrCat(NameOf(column), " is '", row.cells[column],
                                          "', which is not a number; features must be numbers: "
                                          "leave the column out with --drop, or encode it"));
  }

  // Identifies a column in kNormalizationFile.
  std::string ColumnId(size_t column) const {
    return header_.empty() ? absl::StrCat(column + 1) : header_[column];
  }

  std::string NameOf(size_t column) const {
    if (header_.empty()) return absl::StrCat("column ", column + 1);
    return absl::StrCat("'", header_[column], "'");
  }

  absl::Status Mistake(int64_t line, absl::string_view text) const {
    return absl::InvalidArgumentError(
        base::Printable(absl::StrCat(path_, ", line ", line, ": ", text)));
  }

  std::string path_;
  std::vector<CsvRow> rows_;
  std::vector<std::string> header_;
  size_t columns_ = 0;
  size_t label_ = 0;
  std::vector<size_t> features_;      // columns
  std::vector<FeatureScale> scales_;  // of features_; empty: not normalized
  LabelKind kind_ = LabelKind::kWhole;
  std::vector<std::string> classes_;
  std::map<std::string, int64_t> numbers_;  // of classes
  ExampleBuilder builder_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ExampleSource>> CsvSource(const std::string& path,
                                                         const CsvColumns& columns) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kMaxCsv));
  auto rows = ParseCsv(text);
  if (!rows.ok()) return base::Annotate(rows.status(), path);
  auto csv = std::make_unique<Csv>(path, *std::move(rows));
  MUSTER_RETURN_IF_ERROR(csv->Prepare(columns));
  return csv;
}

}  // namespace muster::data
