// SPDX-License-Identifier: Apache-2.0
#include "acc/control/rank_stand.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "acc/control/rank_usage.hpp"
#include "acc/control/thread_wait.hpp"

namespace acc::launcher {
namespace {

constexpr double kBusyPercent = 20;
constexpr double kMuchLess = 5;

std::string name_ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  return text;
}

std::string differ(const std::vector<int>& few, const std::string& how, std::size_t others,
                   const std::string& theirs) {
  return fmt::format("{} {}: {}, while the other {} {} {}", name_ranks(few),
                     few.size() == 1 ? "differs" : "differ", how, others, others == 1 ? "is" : "are", theirs);
}

Stragglers by_place(const std::vector<RankStand>& ranks) {
  std::map<std::string, std::vector<int>> places;
  for (const RankStand& rank : ranks) places[rank.place].push_back(rank.rank);
  const auto most =
      std::ranges::max_element(places, {}, [](const auto& place) { return place.second.size(); });
  if (places.size() < 2 || most->second.size() * 2 <= ranks.size()) return {};
  Stragglers found;
  for (const auto& [place, few] : places) {
    if (place == most->first) continue;
    if (!found.text.empty()) found.text += "\n";
    found.text += differ(few, place, most->second.size(), most->first);
    found.ranks.insert(found.ranks.end(), few.begin(), few.end());
  }
  return found;
}

// Half of the ranks use at least so much; absent when the use of one is not known.
std::optional<double> usual_cpu(const std::vector<RankStand>& ranks) {
  std::vector<double> percents;
  for (const RankStand& rank : ranks) {
    if (rank.cpu_percent) percents.push_back(*rank.cpu_percent);
  }
  if (ranks.empty() || percents.size() != ranks.size()) return std::nullopt;
  std::ranges::sort(percents);
  return percents[percents.size() / 2];
}

Stragglers by_cpu(const std::vector<RankStand>& ranks, double usual) {
  std::vector<int> few;
  for (const RankStand& rank : ranks) {
    if (*rank.cpu_percent * kMuchLess <= usual) few.push_back(rank.rank);
  }
  if (few.empty() || few.size() * 2 >= ranks.size()) return {};
  return {.ranks = few,
          .text = differ(few, fmt::format("at most {:.0f}% CPU", usual / kMuchLess),
                         ranks.size() - few.size(), fmt::format("near {:.0f}%", usual))};
}

}  // namespace

RankStand stand_of(const RankView& rank, const ProcessTable& before, const ProcessTable& now,
                   std::chrono::milliseconds interval) {
  RankStand stand{.rank = rank.rank, .place = rank.ended.empty() ? "ended" : rank.ended};
  const auto tree = now.tree(rank.own_pid());
  if (!rank.ended.empty() || tree.empty()) return stand;
  for (const ProcessStat* process : tree) stand.threads += process->threads;
  stand.processes = static_cast<int>(tree.size());
  stand.cpu_percent = cpu_percent(rank.own_pid(), before, now, interval);
  const std::vector<ThreadWait> threads = threads_of(rank.own_pid());
  if (!threads.empty()) stand.place = to_string(threads.front());
  return stand;
}

std::string to_string(const RankStand& stand) {
  return stand.place + (stand.cpu_percent ? fmt::format(", {:.0f}% CPU", *stand.cpu_percent) : "");
}

Stragglers find_stragglers(const std::vector<RankStand>& ranks) {
  std::vector<RankStand> alive = ranks;
  std::erase_if(alive, [](const RankStand& rank) { return rank.processes == 0; });
  const std::optional<double> usual = usual_cpu(alive);
  // Ranks that work are in another place each time one looks.
  if (usual && *usual >= kBusyPercent) return by_cpu(alive, *usual);
  return by_place(alive);
}

}  // namespace acc::launcher
