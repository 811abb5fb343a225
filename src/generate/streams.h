// The generator's random streams: one number space for each thing that is drawn, so that none repeats another's draws.
#pragma once

#include "common/random.h"

namespace cgcn {

enum class Stream : uint32_t {
  kGraphSizes,
  kCommunitySizes,
  kDegrees,
  kEdges,
  kSurplus,
  kOrder,
  kHidden,
  kDirections,
  kClassOrder,
  kFeatures,
  kTeacher,
  kLabelNoise,
  kTeacherLayers,
};

inline Random stream(uint64_t seed, Stream which, uint32_t index = 0, uint32_t round = 0) {
  return {seed, Purpose::kGenerate, static_cast<uint32_t>(which), index, round};
}

}  // namespace cgcn
