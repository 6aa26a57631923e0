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

/// What an evaluation has beside its mean loss.
struct KeptResults {
  bool predictions = false;                 ///< Logits and labels.
  bool inputs = false;                      ///< What the model was given.
  bool losses = false;                      ///< The mean loss of its batch for each sample.
  bool after_batch = true;                  ///< Whether it is kept when the batch is over.
  PreprocessLogits preprocess_logits = {};  ///< Called with the logits and labels of each batch, if set.
};

/// What an evaluation has computed, on every process for the samples of all: each sample once, in the order
/// of the data set.
class EvaluationResults {
 public:
  /// `accelerator` must outlive this object.
  EvaluationResults(const Accelerator& accelerator, KeptResults kept)
      : accelerator_(accelerator), kept_(std::move(kept)) {}

  /// Together: adds the result for a batch of `rows` samples of this process, and returns that of all.
  EvalPrediction add(const LossOutput& output, std::int64_t rows, const at::Tensor& inputs = {});

  /// The mean loss of all samples; absent if there are no losses. If `only_finite`, of those that are finite,
  /// unless none is.
  std::optional<double> mean_loss(bool only_finite) const;

  /// All rows, each part in one tensor; undefined if there are none. Rows of different widths, such as
  /// predictions of sentences, are padded on the right.
  EvalPrediction concatenated() const;

  /// The rows of each batch on their own.
  const std::vector<EvalPrediction>& batches() const { return batches_; }

 private:
  at::Tensor padded(const at::Tensor& part) const;
  at::Tensor gathered(const at::Tensor& part) const;
  std::vector<at::Tensor> parts(at::Tensor EvalPrediction::* part) const;

  const Accelerator& accelerator_;
  KeptResults kept_;
  std::vector<at::Tensor> losses_ = {};
  std::vector<EvalPrediction> batches_ = {};
};

}  // namespace acc::detail
