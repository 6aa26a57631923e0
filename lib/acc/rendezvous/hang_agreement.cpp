// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/hang_agreement.hpp"

#include <utility>

namespace acc::launcher {

void HangAgreement::begin(std::set<int> nodes, bool is_whole) {
  *this = {};
  nodes_ = std::move(nodes);
  is_whole_ = is_whole;
}

std::optional<JobHang> HangAgreement::on_message(int node, const NodeHang& message) {
  if (!nodes_.contains(node)) return std::nullopt;
  if (message.stage == NodeHangStage::active) on_active(node);
  if (message.stage == NodeHangStage::idle) idle_.insert(node);
  if (message.stage == NodeHangStage::confirmed) on_answer(node, message.number, Phase::asking);
  if (message.stage == NodeHangStage::examined) on_answer(node, message.number, Phase::examining);
  return next_step();
}

std::optional<JobHang> HangAgreement::on_success(int node) {
  nodes_.erase(node);
  idle_.erase(node);
  answered_.erase(node);
  return next_step();
}

// A hang that was found stays one while it is examined.
void HangAgreement::on_active(int node) {
  idle_.erase(node);
  if (phase_ != Phase::examining) phase_ = Phase::watching;
}

void HangAgreement::on_answer(int node, int number, Phase phase) {
  if (phase_ == phase && number_ == number) answered_.insert(node);
}

std::optional<JobHang> HangAgreement::next_step() {
  if (nodes_.empty()) return std::nullopt;
  const bool all_idle = idle_.size() == nodes_.size();
  const bool all_answered = answered_.size() == nodes_.size();
  if (phase_ == Phase::watching && all_idle && !is_whole_)
    return enter(Phase::reported, JobHangStage::unknown);
  if (phase_ == Phase::watching && all_idle) {
    ++number_;
    return enter(Phase::asking, JobHangStage::suspected);
  }
  if (phase_ == Phase::asking && all_answered) return enter(Phase::examining, JobHangStage::found);
  // The next hang is one only after a rank was active in between.
  if (phase_ == Phase::examining && all_answered)
    return enter(all_idle ? Phase::reported : Phase::watching, JobHangStage::examined);
  return std::nullopt;
}

JobHang HangAgreement::enter(Phase phase, JobHangStage stage) {
  phase_ = phase;
  answered_.clear();
  return {.stage = stage, .number = number_};
}

}  // namespace acc::launcher
