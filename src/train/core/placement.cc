#include "train/core/placement.h"

#include <algorithm>
#include <stdexcept>

#include "absl/status/status.h"

namespace muster::train {
namespace {

// Below this, splitting a variable costs more messages than it saves.
constexpr int64_t kSmallestSplit = 64 << 10;

// More elements than any machine holds; their size in bytes fits into int64_t.
constexpr int64_t kMaxElements = int64_t{1} << 48;

// Returns a count. Throws std::out_of_range if `json` is not a whole number in range.
int64_t CountIn(const nlohmann::json& json) {
  if (!json.is_number_integer()) throw std::out_of_range("not a whole number");
  const auto count = json.get<int64_t>();
  if (count < 0 || count > kMaxElements) throw std::out_of_range("not a valid count");
  return count;
}

// Rows [first_row, first_row + rows) of a variable, to be placed in one shard.
struct Part {
  int variable = 0;
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t bytes = 0;
};

int64_t RowsOf(const base::TensorSpec& spec) { return spec.shape.empty() ? 1 : spec.shape[0]; }

int64_t RowElements(const base::TensorSpec& spec) {
  const int64_t rows = RowsOf(spec);
  return rows == 0 ? 0 : base::ElementsOf(spec.shape) / rows;
}

// Splits a variable into parts of about equal size, none larger than a fair share. The number of
// parts is limited by the rows: a split variable must consist of whole rows, so that a part of a
// table is addressed by row numbers.
std::vector<Part> Split(const Variable& variable, int index, int servers, int64_t fair_share) {
  const base::TensorSpec& spec = variable.spec;
  const int64_t rows = RowsOf(spec);
  int64_t parts = 1;
  if (spec.bytes() > std::max(fair_share, kSmallestSplit)) {
    parts = std::clamp<int64_t>((spec.bytes() + fair_share - 1) / fair_share, 1,
                                std::min<int64_t>(servers, rows));
  }
  std::vector<Part> result;
  for (int64_t i = 0; i < parts; ++i) {
    const int64_t first = rows * i / parts;
    const int64_t count = rows * (i + 1) / parts - first;
    result.push_back({index, first, count, count * RowElements(spec) * base::SizeOf(spec.dtype)});
  }
  return result;
}

// Assigns parts to shards: largest first, each to the least loaded shard. The order is total, so
// that every task computes the same placement.
std::vector<std::vector<Part>> Spread(const std::vector<Variable>& variables, int servers) {
  int64_t total = 0;
  for (const Variable& variable : variables) {
    if (variable.kind != Variable::Kind::kBuffer) total += variable.spec.bytes();
  }
  const int64_t fair_share = (total + servers - 1) / servers;
  std::vector<Part> parts;
  for (size_t i = 0; i < variables.size(); ++i) {
    if (variables[i].kind == Variable::Kind::kBuffer) continue;
    for (const Part& part : Split(variables[i], static_cast<int>(i), servers, fair_share)) {
      parts.push_back(part);
    }
  }
  // Parts of one variable with equal size keep their order, and names are unique: no two tasks can
  // order the list differently.
  std::stable_sort(parts.begin(), parts.end(), [&](const Part& a, const Part& b) {
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    return variables[a.variable].spec.name < variables[b.variable].spec.name;
  });
  std::vector<std::vector<Part>> shards(servers);
  std::vector<int64_t> load(servers, 0);
  for (const Part& part : parts) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += part.bytes;
    shards[least - load.begin()].push_back(part);
  }
  return shards;
}

// Cuts pieces into buckets: small variables share a bucket, large ones span several.
std::vector<Bucket> Cut(const std::vector<Piece>& pieces, int64_t bucket_elements) {
  std::vector<Bucket> buckets;
  Bucket open;
  const auto close = [&] {
    if (open.elements > 0) buckets.push_back(open);
    open = {open.offset + open.elements, 0};
  };
  for (const Piece& piece : pieces) {
    // A piece that does not fit begins a new bucket: a bucket is pushed when its last gradient is
    // ready, so a piece that spanned the boundary would make one more bucket wait for it.
    if (open.elements + piece.elements > bucket_elements) close();
    int64_t left = piece.elements;
    while (left > bucket_elements) {
      open.elements = bucket_elements;
      left -= bucket_elements;
      close();
    }
    open.elements += left;
  }
  close();
  return buckets;
}

ShardPlan Plan(const std::vector<Variable>& variables, std::vector<Part> parts,
               int64_t bucket_bytes) {
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    if (a.variable != b.variable) return a.variable > b.variable;
    return a.first_row < b.first_row;
  });
  ShardPlan plan;
  ShardShape& shape = plan.shape;
  for (const Part& part : parts) {
    const Variable& variable = variables[part.variable];
    const int64_t width = RowElements(variable.spec);
    const int64_t elements = part.rows * width;
    if (variable.kind == Variable::Kind::kTable) {
      shape.tables.push_back(
          {part.variable, part.first_row, part.rows, width, shape.table_elements});
      shape.table_elements += elements;
    } else if (elements > 0) {
      plan.dense.push_back({part.variable, part.first_row * width, elements, shape.elements});
      shape.elements += elements;
    }
  }
  shape.buckets =
      Cut(plan.dense, std::max<int64_t>(1, bucket_bytes / static_cast<int64_t>(sizeof(float))));
  return plan;
}

}  // namespace

std::vector<Piece> ShardPlan::PiecesOf(int bucket) const {
  const Bucket& range = shape.buckets[bucket];
  std::vector<Piece> result;
  auto piece = std::upper_bound(
      dense.begin(), dense.end(), range.offset,
      [](int64_t offset, const Piece& p) { return offset < p.offset + p.elements; });
  for (; piece != dense.end() && piece->offset < range.offset + range.elements; ++piece) {
    const int64_t begin = std::max(piece->offset, range.offset);
    const int64_t end = std::min(piece->offset + piece->elements, range.offset + range.elements);
    result.push_back(
        {piece->variable, piece->first + begin - piece->offset, end - begin, begin - range.offset});
  }
  return result;
}

std::vector<ShardPlan> Place(const std::vector<Variable>& variables, int servers,
                             int64_t bucket_bytes) {
  std::vector<ShardPlan> plans;
  for (std::vector<Part>& parts : Spread(variables, servers)) {
    plans.push_back(Plan(variables, std::move(parts), bucket_bytes));
  }
  // Buffers are small and only the chief writes them: the first server holds all of them.
  for (size_t i = 0; i < variables.size(); ++i) {
    if (variables[i].kind != Variable::Kind::kBuffer) continue;
    ShardPlan& first = plans.front();
    const int64_t bytes = variables[i].spec.bytes();
    first.buffers.push_back({static_cast<int>(i), 0, bytes, first.shape.buffer_bytes});
    first.shape.buffer_bytes += bytes;
  }
  return plans;
}

std::vector<Extent> ExtentsOf(const std::vector<ShardPlan>& plans, int variable) {
  constexpr int64_t kFloat = sizeof(float);
  std::vector<Extent> extents;
  for (size_t server = 0; server < plans.size(); ++server) {
    const int index = static_cast<int>(server);
    for (const Piece& piece : plans[server].dense) {
      if (piece.variable != variable) continue;
      extents.push_back(
          {index, piece.first * kFloat, piece.offset * kFloat, piece.elements * kFloat});
    }
    for (const Table& table : plans[server].shape.tables) {
      if (table.variable != variable) continue;
      extents.push_back({index, table.first_row * table.width * kFloat, table.offset * kFloat,
                         table.rows * table.width * kFloat});
    }
    for (const Piece& piece : plans[server].buffers) {
      if (piece.variable == variable) {
        extents.push_back({index, piece.first, piece.offset, piece.elements});
      }
    }
  }
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.first < b.first; });
  return extents;
}

nlohmann::json ShardShape::ToJson() const {
  nlohmann::json json = {{"elements", elements},
                         {"table_elements", table_elements},
                         {"buffer_bytes", buffer_bytes},
                         {"buckets", nlohmann::json::array()},
                         {"tables", nlohmann::json::array()}};
  for (const Bucket& bucket : buckets) json["buckets"].push_back(bucket.elements);
  for (const Table& table : tables) {
    json["tables"].push_back({table.variable, table.first_row, table.rows, table.width});
  }
  return json;
}

absl::StatusOr<ShardShape> ShardShape::FromJson(const nlohmann::json& json) {
  const absl::Status damaged = absl::InvalidArgumentError("malformed description of the shard");
  ShardShape shape;
  try {
    shape.buffer_bytes = CountIn(json.at("buffer_bytes"));
    for (const auto& entry : json.at("buckets")) {
      const int64_t elements = CountIn(entry);
      shape.buckets.push_back({shape.elements, elements});
      // Each addend is at most 2^48, so the sum cannot overflow before it is compared.
      if (elements < 1 || (shape.elements += elements) > kMaxElements) return damaged;
    }
    for (const auto& entry : json.at("tables")) {
      const int64_t rows = CountIn(entry.at(2));
      const int64_t width = CountIn(entry.at(3));
      if (width > 0 && rows > kMaxElements / width) return damaged;
      shape.tables.push_back({static_cast<int>(CountIn(entry.at(0))), CountIn(entry.at(1)), rows,
                              width, shape.table_elements});
      if ((shape.table_elements += rows * width) > kMaxElements) return damaged;
    }
    if (shape.elements == CountIn(json.at("elements")) &&
        shape.table_elements == CountIn(json.at("table_elements"))) {
      return shape;
    }
  } catch (const nlohmann::json::exception&) {
  } catch (const std::out_of_range&) {
  }
  return damaged;
}

}  // namespace muster::train
