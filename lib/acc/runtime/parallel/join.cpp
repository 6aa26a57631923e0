// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/join.hpp"

#include <ATen/ops/zeros.h>

#include <utility>

#include "acc/runtime/parallel/joined_step.hpp"

namespace acc {
namespace {

using Replicas = std::vector<std::shared_ptr<detail::DdpReplica>>;

Replicas replicas_of(const std::vector<Joinable>& models) {
  Replicas replicas;
  for (const Joinable& model : models) {
    if (auto replica = detail::require_replica(model.distributed(), "join_uneven_inputs"))
      replicas.push_back(std::move(replica));
  }
  return replicas;
}

// A process without data does not know the mean that the first model of a step left in such a gradient.
void require_apart(const Replicas& models) {
  for (auto model = models.begin(); model != models.end(); ++model) {
    for (auto other = models.begin(); other != model; ++other)
      (*model)->require_apart_from(**other, "join_uneven_inputs");
  }
}

// While it exists, each forward of the models notifies the processes without data that a step begins.
class JoinedForwards {
 public:
  JoinedForwards(const Replicas& models, bool divide_by_initial_world_size) : models_(models) {
    const auto step = std::make_shared<detail::JoinedStep>();
    step->first = models_.front().get();
    step->divide_by_initial_world_size = divide_by_initial_world_size;
    for (const auto& model : models_) model->set_join(step);
  }
  ~JoinedForwards() {
    for (const auto& model : models_) model->set_join(nullptr);
  }
  JoinedForwards(const JoinedForwards&) = delete;
  JoinedForwards& operator=(const JoinedForwards&) = delete;

 private:
  const Replicas& models_;
};

void wait_for_others(const Replicas& models) {
  ProcessGroup& group = models.front()->group();
  const auto others_have_data = [&] {
    at::Tensor with_data = at::zeros({1}, at::TensorOptions(models.front()->device()));
    group.all_reduce(with_data, ReduceOp::sum);
    return with_data.item<double>() != 0;
  };
  bool was_last = true;
  while (others_have_data()) {
    for (const auto& model : models) model->shadow_step();
    was_last = false;
  }
  for (const auto& model : models) model->finish_join(was_last);
}

}  // namespace

void join_uneven_inputs(const std::vector<Joinable>& models, const std::function<void()>& train,
                        bool divide_by_initial_world_size) {
  const Replicas replicas = replicas_of(models);
  if (replicas.empty()) return train();
  require_apart(replicas);
  const JoinedForwards joined(replicas, divide_by_initial_world_size);
  train();
  wait_for_others(replicas);
}

}  // namespace acc
