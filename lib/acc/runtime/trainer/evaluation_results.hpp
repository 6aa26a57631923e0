// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "acc/runtime/accelerator/accelerator.hpp"
#include "acc/runtime/trainer/trainer_base.hpp"

namespace acc::detail {

/// What an evaluation keeps beside losses.
struct KeptResults {
  bool predictions = false;                 ///< Logits and labels.
  bool inputs = false;                      ///< What the model was given.
  PreprocessLogits preprocess_logits = {};  ///< Called with the logits and labels of each batch, if set.
};

/// What an evaluation has computed, on every process for the samples of all: each sample once, in the order
/// of the data set.
class EvaluationResults {
 public:
  /// `accelerator` must outlive this object.
  EvaluationResults(const Accelerator& accelerator, KeptResults kept)
      : accelerator_(accelerator), kept_(std::move(kept)) {}

  /// Together: adds the result for a batch of `rows` samples of this process.
  void add(const LossOutput& output, std::int64_t rows, const at::Tensor& inputs = {});

  /// The mean loss of all samples; absent if there are no losses. If `only_finite`, of those that are finite,
  /// unless none is.
  std::optional<double> mean_loss(bool only_finite) const;

  /// Moves the predictions, labels and inputs out; undefined if there are none. Rows of different widths,
  /// such as predictions of sentences, are padded on the right.
  EvalPrediction take_predictions();

  /// The mean loss of its batch for each sample; undefined if there are no losses.
  at::Tensor losses() const;

 private:
  at::Tensor padded(const at::Tensor& part) const;
  void gather(std::vector<at::Tensor>& parts, const at::Tensor& part) const;

  const Accelerator& accelerator_;
  KeptResults kept_;
  std::vector<at::Tensor> losses_ = {};
  std::vector<at::Tensor> predictions_ = {};
  std::vector<at::Tensor> labels_ = {};
  std::vector<at::Tensor> inputs_ = {};
};

}  // namespace acc::detail
