// The view of the simulated camera, the recognition of a lamp in it, and the motion of the robot: the same bytes,
// the same work and the same formulas as in crates/bench/src/brake, which `brake check` verifies before the
// measurement.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace brake {

constexpr int kWidth = 1920, kHeight = 1080, kStep = kWidth * 3, kBytes = kStep * kHeight;
constexpr int kTemplate = 24, kRow = kTemplate * 3;
constexpr uint32_t kThreshold = 900;  // mean squared difference per byte
constexpr double kTurn = 90;          // degrees per second
constexpr double kFocal = 1662.8;     // pixels
constexpr double kPi = 3.14159265358979323846;

enum Color { red, yellow, green };
constexpr const char* kNames[] = {"red", "yellow", "green"};

struct Region {
    int width = 0, height = 0;
};

inline void light(int dx, int dy, Color lit, uint8_t* pixel) {
    static const uint8_t on[3][3] = {{250, 40, 30}, {250, 200, 40}, {40, 240, 80}};
    static const uint8_t off[3][3] = {{60, 14, 12}, {60, 50, 12}, {12, 60, 20}};
    static const uint8_t housing[3] = {24, 24, 24};
    const uint8_t* from = housing;
    for (int c = red; c <= green; ++c) {
        const int y = dy - (c - 1) * 36;
        if (dx * dx + y * y <= 11 * 11) {
            from = c == lit ? on[c] : off[c];
            break;
        }
    }
    memcpy(pixel, from, 3);
}

class Scene {
public:
    Scene() : strip_(3 * (kWidth + kShifts)) {
        uint32_t state = 1;
        for (auto& byte : strip_) {
            state = state * 1664525u + 1013904223u;
            byte = static_cast<uint8_t>(96 + (state >> 24) % 64);
        }
    }

    void draw(uint8_t* image, uint32_t shift, std::optional<int> column, Color lit) const {
        for (int y = 0; y < kHeight; ++y)
            memcpy(image + y * kStep, strip_.data() + 3 * ((static_cast<uint32_t>(y) * 7 + shift) % kShifts), kStep);
        if (!column) return;
        for (int dy = -60; dy < 60; ++dy)
            for (int dx = -24; dx < 24; ++dx) {
                const int x = *column + dx;
                if (x >= 0 && x < kWidth) light(dx, dy, lit, image + (kHeight / 2 + dy) * kStep + x * 3);
            }
    }

private:
    static constexpr uint32_t kShifts = 256;
    std::vector<uint8_t> strip_;
};

struct Match {
    uint32_t sum = UINT32_MAX;
    int x = 0, y = 0;

    bool recognized() const { return sum / (kTemplate * kRow) <= kThreshold; }
};

class Recognizer {
public:
    Recognizer(Color color, Region region) : region_(region) {
        for (int y = 0; y < kTemplate; ++y)
            for (int x = 0; x < kTemplate; ++x) {
                uint8_t pixel[3];
                light(x - kTemplate / 2, (color - 1) * 36 + y - kTemplate / 2, color, pixel);
                std::copy(pixel, pixel + 3, template_ + y * kRow + x * 3);
            }
    }

    // Every position is computed completely, so that the work is the same for every image.
    Match find(const uint8_t* image) const {
        const int left = (kWidth - region_.width) / 2, top = (kHeight - region_.height) / 2;
        Match best;
        for (int y = top; y <= top + region_.height - kTemplate; ++y)
            for (int x = left; x <= left + region_.width - kTemplate; ++x) {
                const uint32_t sum = difference(image + y * kStep + x * 3);
                if (sum < best.sum) best = {sum, x, y};
            }
        return best;
    }

private:
    uint32_t difference(const uint8_t* at) const {
        int32_t sum = 0;
        for (int y = 0; y < kTemplate; ++y) {
            const uint8_t* row = at + y * kStep;
            const int16_t* other = template_ + y * kRow;
            for (int i = 0; i < kRow; ++i) {
                const int16_t d = static_cast<int16_t>(row[i] - other[i]);
                sum += d * d;
            }
        }
        return static_cast<uint32_t>(sum);
    }

    Region region_;
    int16_t template_[kTemplate * kRow];
};

// From -180 up to 180 degrees.
inline double wrap(double degrees) {
    const double rest = std::fmod(degrees + 180, 360);
    return (rest < 0 ? rest + 360 : rest) - 180;
}

// Column of the light in the image, seen this many degrees past it.
inline std::optional<int> column(double degrees) {
    degrees = wrap(degrees);
    if (std::fabs(degrees) >= 60) return std::nullopt;
    return static_cast<int>(std::round(kWidth / 2.0 + kFocal * std::tan(degrees * kPi / 180)));
}

// Whether a lamp in this column can be recognized: the template must be completely inside the
// region.
inline bool in_region(int column, int width) { return std::abs(column - kWidth / 2) <= (width - kTemplate) / 2; }

// Degrees from the light at which that begins; columns are rounded, which adds half a pixel.
inline double entry_degrees(int width) {
    return std::atan(((width - kTemplate) / 2.0 + 0.5) / kFocal) * 180 / kPi;
}

}  // namespace brake
