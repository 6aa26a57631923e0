// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "acc/preflight/judgement.hpp"
#include "acc/preflight/node_health.hpp"

namespace acc::launcher {

/// For a person: a row per node, in which `!` marks what a finding is about; below, the findings.
std::string preflight_text(const Observations& observations, const std::vector<Finding>& findings);

/// A line for each finding: `error: ...`.
std::string findings_text(const std::vector<Finding>& findings);

/// For programs, on one line: the schema is in apps/docs/reference.md.
std::string preflight_json(const Observations& observations, const std::vector<Finding>& findings);

/// Why no worker was started, in one line for all of `num_nodes` nodes.
std::string refusal_text(const std::vector<Finding>& findings, int num_nodes);

/// Findings for the store of the job, and back; decode_findings() throws std::exception for anything else.
std::string encode(const std::vector<Finding>& findings);
std::vector<Finding> decode_findings(std::string_view text);

}  // namespace acc::launcher
