#include "train/run/model_graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace muster::train {
namespace {

using summary::GraphNode;

// TensorBoard's layout takes minutes beyond this.
constexpr size_t kMaxNodes = 20000;

std::string PathOf(absl::string_view dotted_name) {
  return absl::StrReplaceAll(dotted_name, {{".", "/"}});
}

std::string ParentOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? "" : std::string(path.substr(0, slash));
}

std::string CommonModule(std::string a, const std::string& b) {
  while (!a.empty() && a != b && !(b.starts_with(a) && b[a.size()] == '/')) a = ParentOf(a);
  return a;
}

// The innermost module around a set of operations; nullopt for none.
using Surrounding = std::optional<std::string>;

void Extend(Surrounding& surrounding, const Surrounding& other) {
  if (!other.has_value()) return;
  surrounding = surrounding.has_value() ? CommonModule(*surrounding, *other) : *other;
}

// Makes names unique as TensorFlow does: relu, relu_1, …
class Names {
 public:
  std::string Add(std::string name) {
    const std::string base = name;
    for (int i = 1; !used_.insert(name).second; ++i) name = absl::StrCat(base, "_", i);
    return name;
  }

 private:
  std::set<std::string> used_;
};

std::string DeviceOf(const cluster::TaskId& task) {
  return absl::StrCat("/job:", task.role, "/task:", task.index);
}

std::string ApplyOp(const OptimizerConfig& optimizer) {
  std::string type = optimizer.ToJson().at("type");
  type[0] = absl::ascii_toupper(type[0]);
  return absl::StrCat("Apply", type);
}

// The part of a variable in one extent, which begins and ends at a row.
base::Shape SliceOf(const base::TensorSpec& spec, const Extent& extent) {
  base::Shape shape = spec.shape;
  if (extent.bytes == spec.bytes() || shape.empty()) return shape;
  shape[0] = extent.bytes * spec.shape[0] / spec.bytes();
  return shape;
}

class GraphBuilder {
 public:
  explicit GraphBuilder(const GraphInput& input)
      : input_(input), modules_(ModulesOf(input.operations)), apply_op_(ApplyOp(input.optimizer)) {}

  std::vector<GraphNode> Build() {
    const std::vector<cluster::TaskId> tasks = input_.environment.TrainingTasks();
    const bool servers = input_.environment.Servers() > 0;
    if (servers) AddServers();
    for (const cluster::TaskId& task : tasks) {
      const std::string group =
          tasks.size() > 1 ? absl::StrCat(task.role, "_", task.index, "/") : "";
      const size_t before = nodes_.size();
      if (!servers) AddOwnVariables(group, DeviceOf(task));
      AddTask(group, DeviceOf(task));
      if (nodes_.size() + (nodes_.size() - before) > kMaxNodes) break;
    }
    servers ? AddUpdates() : AddOwnUpdates();
    return std::move(nodes_);
  }

 private:
  // One gradient of one task.
  struct Gradient {
    std::string group;
    std::string device;
    std::string node;
  };

  void Add(GraphNode node) { nodes_.push_back(std::move(node)); }

  GraphNode VariableNode(const base::TensorSpec& spec, std::string device) const {
    return {.name = PathOf(spec.name),
            .op = "VariableV2",
            .device = std::move(device),
            .dtype = spec.dtype,
            .shape = spec.shape};
  }

  void AddServers() {
    for (size_t i = 0; i < input_.variables.size(); ++i) {
      const base::TensorSpec& spec = input_.variables[i].spec;
      const std::vector<Extent> extents = ExtentsOf(input_.plans, static_cast<int>(i));
      for (size_t part = 0; part < extents.size(); ++part) {
        GraphNode node = VariableNode(spec, DeviceOf({"ps", extents[part].server}));
        if (extents.size() > 1) {
          absl::StrAppend(&node.name, "/part_", part);
          node.shape = SliceOf(spec, extents[part]);
        }
        parts_[spec.name].push_back(node);
        names_.Add(node.name);
        Add(std::move(node));
      }
    }
  }

  void AddOwnVariables(const std::string& group, const std::string& device) {
    for (const Variable& variable : input_.variables) {
      GraphNode node = VariableNode(variable.spec, device);
      node.name = names_.Add(absl::StrCat(group, node.name));
      Add(std::move(node));
    }
  }

  // Returns the node from which a task reads a variable: the variable, or its concatenated parts.
  std::string Read(const std::string& variable, const std::string& group,
                   const std::string& device) {
    const auto parts = parts_.find(variable);
    if (parts == parts_.end()) return absl::StrCat(group, PathOf(variable));
    if (parts->second.size() == 1) return parts->second[0].name;
    std::string& name = concatenated_[group + variable];
    if (!name.empty()) return name;
    name = names_.Add(absl::StrCat(group, PathOf(variable), "/concat"));
    GraphNode node{.name = name, .op = "ConcatV2", .device = device};
    for (const GraphNode& part : parts->second) node.inputs.push_back(part.name);
    Add(std::move(node));
    return name;
  }

  void AddTask(const std::string& group, const std::string& device) {
    std::vector<std::string> names;
    std::map<std::string, std::vector<std::string>> readers;  // of each variable
    for (size_t i = 0; i < input_.operations.size(); ++i) {
      const Operation& operation = input_.operations[i];
      std::string name = operation.name;
      if (name.empty()) {
        name = modules_[i].empty() ? operation.op : absl::StrCat(modules_[i], "/", operation.op);
      }
      names.push_back(names_.Add(absl::StrCat(group, name)));
      GraphNode node{.name = names.back(),
                     .op = operation.op,
                     .device = device,
                     .dtype = operation.dtype,
                     .shape = operation.shape};
      for (const int operand : operation.operands) node.inputs.push_back(names[operand]);
      for (const std::string& variable : operation.reads) {
        node.inputs.push_back(Read(variable, group, device));
        readers[variable].push_back(names.back());
      }
      Add(std::move(node));
    }
    for (const Variable& variable : input_.variables) {
      const auto found = readers.find(variable.spec.name);
      if (variable.kind == Variable::Kind::kBuffer || found == readers.end()) continue;
      AddGradient(variable.spec, found->second, names.back(), {.group = group, .device = device});
    }
  }

  void AddGradient(const base::TensorSpec& spec, const std::vector<std::string>& readers,
                   const std::string& loss, Gradient gradient) {
    gradient.node = names_.Add(absl::StrCat(gradient.group, "gradients/", PathOf(spec.name)));
    GraphNode node{.name = gradient.node,
                   .op = "Gradient",
                   .inputs = readers,
                   .device = gradient.device,
                   .dtype = spec.dtype,
                   .shape = spec.shape};
    if (std::find(readers.begin(), readers.end(), loss) == readers.end()) {
      node.inputs.push_back(loss);
    }
    Add(std::move(node));
    gradients_[spec.name].push_back(std::move(gradient));
  }

  void AddUpdates() {
    for (const auto& [variable, gradients] : gradients_) {
      for (const GraphNode& part : parts_[variable]) {
        GraphNode node{.name = names_.Add(absl::StrCat("train/", part.name)),
                       .op = apply_op_,
                       .inputs = {part.name},
                       .device = part.device,
                       .dtype = part.dtype,
                       .shape = part.shape};
        for (const Gradient& gradient : gradients) node.inputs.push_back(gradient.node);
        Add(std::move(node));
      }
    }
  }

  // Without servers each task updates its own variables with the sum of all gradients.
  void AddOwnUpdates() {
    for (const auto& [variable, gradients] : gradients_) {
      for (const Gradient& own : gradients) {
        std::string sum = own.node;
        if (gradients.size() > 1) {
          sum = names_.Add(absl::StrCat(own.group, "all_reduce/", PathOf(variable)));
          GraphNode node{.name = sum, .op = "CollectiveReduce", .device = own.device};
          for (const Gradient& gradient : gradients) node.inputs.push_back(gradient.node);
          Add(std::move(node));
        }
        Add({.name = names_.Add(absl::StrCat(own.group, "train/", PathOf(variable))),
             .op = apply_op_,
             .inputs = {absl::StrCat(own.group, PathOf(variable)), sum},
             .device = own.device});
      }
    }
  }

  const GraphInput& input_;
  const std::vector<std::string> modules_;
  const std::string apply_op_;
  std::vector<GraphNode> nodes_;
  Names names_;
  std::map<std::string, std::vector<GraphNode>> parts_;  // of each variable on servers
  std::map<std::string, std::string> concatenated_;      // by group and variable
  std::map<std::string, std::vector<Gradient>> gradients_;
};

}  // namespace

std::vector<std::string> ModulesOf(const std::vector<Operation>& operations) {
  const size_t count = operations.size();
  // `before` and `after`: of the nearest operations that read variables. Operations are in the
  // order of execution, so one pass forward and one backward suffice.
  std::vector<Surrounding> own(count), before(count), after(count);
  for (size_t i = 0; i < count; ++i) {
    for (const std::string& variable : operations[i].reads) {
      Extend(own[i], ParentOf(PathOf(variable)));
    }
    for (const int operand : operations[i].operands) {
      Extend(before[i], own[operand].has_value() ? own[operand] : before[operand]);
    }
  }
  for (size_t i = count; i-- > 0;) {
    for (const int operand : operations[i].operands) {
      Extend(after[operand], own[i].has_value() ? own[i] : after[i]);
    }
  }
  std::vector<std::string> modules;
  for (size_t i = 0; i < count; ++i) {
    Surrounding neighbours = before[i];
    Extend(neighbours, after[i]);
    const bool between = before[i].has_value() && after[i].has_value();
    if (own[i].has_value()) {
      modules.push_back(*own[i]);
    } else {
      modules.push_back(between ? *neighbours : ParentOf(neighbours.value_or("")));
    }
  }
  return modules;
}

std::vector<Operation> UntracedModel(const std::vector<Variable>& variables) {
  Operation loss{.op = "Identity", .name = "loss"};
  for (const Variable& variable : variables) loss.reads.push_back(variable.spec.name);
  return {loss};
}

std::vector<GraphNode> MakeGraph(const GraphInput& input) { return GraphBuilder(input).Build(); }

}  // namespace muster::train
