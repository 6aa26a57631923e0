// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace acc::launcher {

/// One value of a metric.
struct MetricSample {
  std::vector<std::pair<std::string, std::string>> labels = {};
  double value = 0;

  bool operator==(const MetricSample&) const = default;
};

/// A metric and what it is of each thing that has it.
struct Metric {
  enum class Type {
    gauge,    ///< goes up and down
    counter,  ///< goes up, and begins again at zero; the samples' name has the suffix `_total`
  };
  /// Without suffix; ends with its unit, if it has one: `acc_rank_memory_bytes`.
  std::string name = {};
  Type type = Type::gauge;
  /// `bytes`, `seconds`, `ratio`; empty: none.
  std::string unit = {};
  std::string help = {};
  std::vector<MetricSample> samples = {};
};

/// How metrics are written.
enum class MetricsFormat {
  prometheus,    ///< Prometheus's text format, version 0.0.4, which node_exporter reads from files, too
  open_metrics,  ///< OpenMetrics 1.0
};

/// The value of the header Content-Type: `application/openmetrics-text; version=1.0.0; charset=utf-8`.
std::string_view content_type(MetricsFormat format);

/// The format that a client asks for by its header Accept.
MetricsFormat format_for(std::string_view accept);

/// The metrics that have samples, in their order. Texts must be UTF-8. Sources:
/// https://prometheus.io/docs/instrumenting/exposition_formats/ and
/// https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md
std::string metrics_text(const std::vector<Metric>& metrics, MetricsFormat format);

}  // namespace acc::launcher
