// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/sharded_optimizer_state.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <map>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/formats/dcp_metadata.hpp"
#include "acc/runtime/checkpoint/folder_replacement.hpp"
#include "acc/runtime/checkpoint/optimizer_state.hpp"
#include "acc/runtime/checkpoint/parameter_names.hpp"
#include "acc/runtime/checkpoint/torch_types.hpp"

namespace acc::detail {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOptimizer = "optimizer";
constexpr const char* kState = "state";
constexpr const char* kGroups = "param_groups";
// The only field of a state that has one value for all elements of a parameter.
constexpr const char* kStep = "step";

std::vector<std::string> path_of(const std::string& parameter, const std::string& field) {
  return {kOptimizer, kState, parameter, field};
}

// The ranges of one field of the state of an optimizer's parameter.
void add_field(const std::string& field, const at::Tensor& value, const std::vector<ParameterRange>& of,
               std::vector<TensorRange>& ranges) {
  for (const ParameterRange& range : of) {
    const std::vector<std::string> path = path_of(range.name, field);
    if (field != kStep) {
      ranges.push_back({.path = path,
                        .shape = range.shape,
                        .begin = range.begin,
                        .elements = value.flatten().narrow(0, range.offset, range.numel)});
    } else if (range.begin == 0) {
      ranges.push_back(whole_range(path, value));
    }
  }
}

PtList& groups_in(PtValue& state) {
  auto& dict = std::get<PtDict>(state.content);
  const auto groups = std::ranges::find_if(
      dict, [](const PtEntry& entry) { return *entry.key.get_if<std::string>() == kGroups; });
  return std::get<PtList>(groups->value.content);
}

// Reads the state from one checkpoint.
class ShardedStateReader {
 public:
  ShardedStateReader(const fs::path& folder, const torch::optim::Optimizer& optimizer,
                     const ShardedParameters& parameters)
      : folder_(folder),
        optimizer_(optimizer),
        parameters_(parameters),
        metadata_(read_dcp_metadata(complete_folder(folder))) {
    for (const auto& [name, tensor] : metadata_.tensors) {
      const DcpPath& path = tensor.path;
      if (path.size() == 4 && path[0] == DcpPath::value_type(kOptimizer) &&
          path[1] == DcpPath::value_type(kState) && path[2].index() == 0 && path[3].index() == 0)
        fields_[std::get<std::string>(path[2])][std::get<std::string>(path[3])] = &tensor;
    }
  }

  PtValue read() {
    PtList groups = read_groups();
    PtDict state;
    std::vector<at::Tensor> own;
    for (const auto& group : optimizer_.param_groups())
      own.insert(own.end(), group.params().begin(), group.params().end());
    for (std::size_t i = 0; i < own.size(); ++i) {
      PtDict fields = make_fields(parameters_.ranges.at(i), own[i].sizes());
      if (!fields.empty()) state.push_back({static_cast<std::int64_t>(i), std::move(fields)});
    }
    load_sharded(folder_, ranges_);
    for (const auto& [field, values] : whole_) require_equal(field, values);
    return PtDict{{kState, std::move(state)}, {kGroups, std::move(groups)}};
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error({.kind = ErrorKind::config, .what = what, .where = folder_.string()});
  }

  // The parameter groups, with numbers for this process's parameters in place of the names.
  PtList read_groups() const {
    const PtDict objects = read_sharded_objects(folder_);
    const PtValue all(objects);
    const PtValue* optimizer = all.find(kOptimizer);
    const PtValue* groups = optimizer != nullptr ? optimizer->find(kGroups) : nullptr;
    const auto* list = groups != nullptr ? groups->get_if<PtList>() : nullptr;
    if (list == nullptr) refuse("is not the state of an optimizer: it has no param_groups");
    if (list->size() != parameters_.names.size()) {
      refuse(
          fmt::format("has {} parameter groups, the optimizer {}", list->size(), parameters_.names.size()));
    }
    PtList result = *list;
    std::int64_t number = 0;
    for (std::size_t i = 0; i < result.size(); ++i) {
      require_names(i, result[i], parameters_.names[i], folder_.string());
      PtList numbers;
      for (std::size_t left = optimizer_.param_groups()[i].params().size(); left > 0; --left)
        numbers.emplace_back(number++);
      replace_params(result[i], std::move(numbers));
    }
    return result;
  }

  // Memory for the state of an optimizer's parameter, and the ranges to load into it.
  PtDict make_fields(const std::vector<ParameterRange>& of, c10::IntArrayRef shape) {
    PtDict fields;
    if (of.empty()) return fields;
    for (const auto& [field, of_first] : fields_[of.front().name]) {
      at::Tensor value;
      std::vector<at::Tensor> whole;
      for (const ParameterRange& range : of) {
        const auto saved = fields_[range.name].find(field);
        if (saved == fields_[range.name].end()) refuse(fmt::format("has no '{}' of '{}'", field, range.name));
        add_range(field, *saved->second, range, shape, value, whole);
      }
      fields.push_back({field, value});
      if (!whole.empty()) whole_.emplace_back(of.front().name + "." + field, std::move(whole));
    }
    return fields;
  }

  void add_range(const std::string& field, const DcpTensor& saved, const ParameterRange& range,
                 c10::IntArrayRef shape, at::Tensor& value, std::vector<at::Tensor>& whole) {
    const at::TensorOptions type(scalar_type_of(*saved.dtype));
    if (field == kStep) {
      value = at::empty({}, type);
      whole.push_back(value);
      ranges_.push_back(whole_range(path_of(range.name, field), value));
      return;
    }
    // What lies between the ranges is padding.
    if (!value.defined()) value = at::zeros(shape, type);
    ranges_.push_back({.path = path_of(range.name, field),
                       .shape = range.shape,
                       .begin = range.begin,
                       .elements = value.view({-1}).narrow(0, range.offset, range.numel)});
  }

  // Parameters that are stepped together must have been so before.
  void require_equal(const std::string& field, const std::vector<at::Tensor>& values) const {
    for (const at::Tensor& value : values) {
      if (!value.equal(values.front()))
        refuse(fmt::format("'{}' differs from that of another parameter of its group", field));
    }
  }

  fs::path folder_;
  const torch::optim::Optimizer& optimizer_;
  const ShardedParameters& parameters_;
  DcpMetadata metadata_;
  std::map<std::string, std::map<std::string, const DcpTensor*>> fields_ = {};
  std::vector<TensorRange> ranges_ = {};
  std::vector<std::pair<std::string, std::vector<at::Tensor>>> whole_ = {};
};

}  // namespace

ShardedState sharded_optimizer_state(const torch::optim::Optimizer& optimizer,
                                     const ShardedParameters& parameters,
                                     const std::vector<double>& initial_rates) {
  PtValue own = optimizer_state(optimizer);
  ShardedState result;
  for (const PtEntry& entry : *own.find(kState)->get_if<PtDict>()) {
    const auto number = static_cast<std::size_t>(*entry.key.get_if<std::int64_t>());
    for (const PtEntry& field : *entry.value.get_if<PtDict>()) {
      if (const auto* value = field.value.get_if<at::Tensor>())
        add_field(*field.key.get_if<std::string>(), *value, parameters.ranges.at(number), result.ranges);
    }
  }
  PtList groups = groups_in(own);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    replace_params(groups[i], {parameters.names.at(i).begin(), parameters.names.at(i).end()});
    if (i < initial_rates.size())
      std::get<PtDict>(groups[i].content).push_back({"initial_lr", initial_rates[i]});
  }
  result.objects = {{kOptimizer, PtDict{{kGroups, std::move(groups)}}}};
  return result;
}

PtValue read_sharded_optimizer_state(const fs::path& folder, const torch::optim::Optimizer& optimizer,
                                     const ShardedParameters& parameters) {
  return ShardedStateReader(folder, optimizer, parameters).read();
}

}  // namespace acc::detail
