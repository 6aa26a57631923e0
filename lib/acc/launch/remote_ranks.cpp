// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/remote_ranks.hpp"

#include <algorithm>
#include <utility>

namespace acc::launcher {

using boost::system::error_code;

RemoteRanks::RemoteRanks(boost::asio::io_context& loop, RemoteRanksParts parts, RemoteRanksTimes times)
    : parts_(std::move(parts)), times_(times), wait_(loop), pause_(loop) {}

void RemoteRanks::report(const Event& event) {
  const auto* attempt = std::get_if<AttemptStarted>(&event);
  if (attempt == nullptr) return;
  node_rank_ = attempt->round.machine_rank;
  nodes_.clear();
  asked_.reset();
  if (!is_asking_) return;
  reason_ = "a new attempt begins";
  finish();
}

void RemoteRanks::ask(Answer answer) {
  answers_.push_back(std::move(answer));
  if (is_asking_) return;
  if (!may_ask_again()) return finish();
  const auto now = Clock::now();
  if (asked_ && now - *asked_ > times_.memory) nodes_.clear();
  asked_ = now;
  is_asking_ = true;
  is_listed_ = false;
  wait_.expires_at(now + times_.wait);
  wait_.async_wait([this](error_code error) {
    if (!error) end_wait();
  });
  reason_.clear();
  // The answer may come during the call.
  const std::string reason = parts_.want();
  if (reason.empty()) return;
  reason_ = reason;
  nodes_.clear();
  finish();
}

bool RemoteRanks::may_ask_again() const {
  const auto pause = std::max<Clock::duration>(times_.pause, times_.pause_of_node * nodes_.size());
  return nodes_.empty() || !asked_ || Clock::now() - *asked_ >= pause;
}

void RemoteRanks::on_peers(const std::vector<PeerNode>& peers) {
  if (!is_asking_) return;
  std::map<int, Node> before = std::exchange(nodes_, {});
  for (const PeerNode& peer : peers) {
    Node& node = nodes_[peer.node_rank] = std::move(before[peer.node_rank]);
    node.peer = peer;
    node.is_awaited = peer.reports && !node.is_late;
  }
  is_listed_ = true;
  finish_when_complete();
}

void RemoteRanks::on_report(const RankReport& report) {
  const auto known = nodes_.find(report.node_rank);
  if (known == nodes_.end()) return;
  Node& node = known->second;
  node.has_failed = report.ranks.empty();
  if (!node.has_failed) {
    node.ranks = report.ranks;
    node.reported = Clock::now();
  }
  node.is_awaited = node.is_late = false;
  finish_when_complete();
}

void RemoteRanks::finish_when_complete() {
  if (!is_asking_ || !is_listed_) return;
  if (std::ranges::none_of(nodes_, [](const auto& entry) { return entry.second.is_awaited; })) finish();
}

void RemoteRanks::end_wait() {
  // The handler of an expired timer cannot be cancelled any more.
  if (!is_asking_ || Clock::now() < wait_.expiry()) return;
  if (!is_listed_) reason_ = "the node that leads the job does not answer";
  for (auto& [rank, node] : nodes_) node.is_late = node.is_late || std::exchange(node.is_awaited, false);
  finish();
}

void RemoteRanks::finish() {
  is_asking_ = false;
  wait_.cancel();
  const nlohmann::json nodes = to_json(reports());
  for (const Answer& answer : std::exchange(answers_, {})) answer(nodes);
}

NodeReports RemoteRanks::reports() const {
  NodeReports reports = {.host = parts_.host, .node_rank = node_rank_, .reason = reason_};
  for (const auto& [rank, node] : nodes_) {
    NodeReport& report = reports.nodes.emplace_back(NodeReport{.node_rank = rank,
                                                               .host = node.peer.host,
                                                               .workers = node.peer.workers,
                                                               .first_rank = node.peer.first_rank,
                                                               .ranks = node.ranks});
    if (!node.peer.reports) report.problem = "it runs an older acc";
    if (node.has_failed && !node.reported) report.problem = "it could not measure them";
    if (node.reported)
      report.age = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - *node.reported);
  }
  return reports;
}

void RemoteRanks::on_wanted() {
  if (std::exchange(is_wanted_, true)) return;
  const auto now = Clock::now();
  if (!measured_ || now - *measured_ >= times_.pause) return measure();
  pause_.expires_at(*measured_ + times_.pause);
  pause_.async_wait([this](error_code error) {
    if (!error) measure();
  });
}

void RemoteRanks::measure() {
  measured_ = Clock::now();
  parts_.measure([this](const std::string& ranks) {
    is_wanted_ = false;
    parts_.report(ranks);
  });
}

std::string measured_ranks(const std::function<JobView()>& view) {
  const ProcessSample sample = sample_processes();
  const std::vector<GpuProcess> gpus = query_gpu_processes();
  const std::vector<RankView> ranks = view().ranks;
  std::vector<RankUsage> usage;
  CountedProcesses counted;
  for (RankView rank : ranks) {
    rank.pid = rank.own_pid();
    usage.push_back(rank_usage(rank, sample.previous, sample.current, sample.interval, gpus, counted));
  }
  return to_json(ranks, usage).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace acc::launcher
