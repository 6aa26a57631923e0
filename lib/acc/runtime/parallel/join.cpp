// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/join.hpp"

#include <ATen/ops/zeros.h>

#include <exception>
#include <utility>

#include "acc/runtime/parallel/joined_step.hpp"

namespace acc {
namespace {

// Undoes what the constructor did, whether or not the others could be waited for.
class Leave {
 public:
  Leave(const std::vector<std::shared_ptr<DdpReplica>>& models, const std::function<void()>& at_end)
      : models_(models), at_end_(at_end) {}
  ~Leave() {
    for (const auto& model : models_) model->set_join(nullptr);
    if (at_end_) at_end_();
  }
  Leave(const Leave&) = delete;
  Leave& operator=(const Leave&) = delete;

 private:
  const std::vector<std::shared_ptr<DdpReplica>>& models_;
  const std::function<void()>& at_end_;
};

}  // namespace

Join::Join(const std::vector<Joinable>& models, bool divide_by_initial_world_size,
           std::function<void()> at_end)
    : step_(std::make_shared<JoinedStep>()),
      at_end_(std::move(at_end)),
      exceptions_before_(std::uncaught_exceptions()) {
  for (const Joinable& model : models) {
    if (model.ddp()) models_.push_back(model.ddp());
  }
  if (models_.empty()) return;
  step_->first = models_.front().get();
  step_->divide_by_initial_world_size = divide_by_initial_world_size;
  for (const auto& model : models_) model->set_join(step_);
}

Join::~Join() noexcept(false) {
  const Leave leave(models_, at_end_);
  if (!models_.empty() && std::uncaught_exceptions() == exceptions_before_) wait_for_others();
}

void Join::wait_for_others() {
  ProcessGroup& group = models_.front()->group();
  const auto others_have_data = [&] {
    at::Tensor with_data = at::zeros({1}, at::TensorOptions(models_.front()->device()));
    group.all_reduce(with_data, ReduceOp::sum);
    return with_data.item<double>() != 0;
  };
  bool was_last = true;
  while (others_have_data()) {
    for (const auto& model : models_) model->shadow_step();
    was_last = false;
  }
  for (const auto& model : models_) model->finish_join(was_last);
}

}  // namespace acc
