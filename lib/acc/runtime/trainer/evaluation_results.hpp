// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "acc/runtime/accelerator/accelerator.hpp"
#include "acc/runtime/trainer/trainer_base.hpp"

namespace acc::detail {

/// What an evaluation has computed, on every process for the samples of all: each sample once, in the order
/// of the data set.
class EvaluationResults {
 public:
  /// Keeps losses, and if `keeps_predictions`, logits and labels. `accelerator` must outlive this object.
  EvaluationResults(const Accelerator& accelerator, bool keeps_predictions)
      : accelerator_(accelerator), keeps_predictions_(keeps_predictions) {}

  /// Together: adds the result for a batch of `rows` samples of this process.
  void add(const LossOutput& output, std::int64_t rows);

  /// The mean loss of all samples; absent if there are no losses. If `only_finite`, of those that are finite,
  /// unless none is.
  std::optional<double> mean_loss(bool only_finite) const;

  /// Moves the predictions and labels out; undefined if there are none. Rows of different widths, such as
  /// predictions of sentences, are padded on the right.
  EvalPrediction take_predictions();

 private:
  void keep(std::vector<at::Tensor>& parts, const at::Tensor& part) const;

  const Accelerator& accelerator_;
  bool keeps_predictions_;
  std::vector<at::Tensor> losses_ = {};
  std::vector<at::Tensor> predictions_ = {};
  std::vector<at::Tensor> labels_ = {};
};

}  // namespace acc::detail
