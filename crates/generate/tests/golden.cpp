// Reads CONTROL and PARTS as a T, writes it again with the same THRESHOLD, and reads mutants of it: they give a
// message or an error. T and the macros stand above.

#include <cstdio>

using namespace ropewalk;
using namespace ropewalk::detail;
using Bytes = std::vector<std::uint8_t>;

// `Error::last` names it; the library is not linked.
extern "C" const char* ropewalk_error_message() { return ""; }

static Bytes bytes(const std::string& hex) {
    Bytes out;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) out.push_back(std::stoi(hex.substr(i, 2), nullptr, 16));
    return out;
}

static std::string read(T& value, const Bytes& control, const std::vector<Bytes>& parts) {
    Places<ropewalk_bytes> places{};
    places.control = {control.data(), control.size()};
    for (auto& part : parts) places.parts[places.count++] = {part.data(), part.size()};
    Read reader(places);
    T::ropewalk_fields(value, reader);
    reader.finish();
    return reader.error();
}

static int fail(const std::string& what) {
    std::printf("%s\n", what.c_str());
    return 1;
}

int main() {
    const Bytes control = bytes(CONTROL);
    std::vector<Bytes> parts;
    for (const char* part : std::vector<const char*> PARTS) {
        // In an array of its own of words of 8 bytes, so that it is aligned.
        parts.push_back(bytes(part));
    }
    T value;
    auto error = read(value, control, parts);
    if (!error.empty()) return fail(error);

    Measure measure;
    measure.threshold = THRESHOLD;
    T::ropewalk_fields(value, measure);
    if (measure.failed()) return fail(measure.error());
    if (measure.part_count != parts.size()) return fail("another number of parts");
    if (measure.control_len < control.size()) return fail("measured too short");
    Bytes written(measure.control_len);
    Places<ropewalk_place> places{};
    places.control = {written.data(), written.size()};
    for (auto& part : parts) places.parts[places.count++] = {part.data(), part.size()};
    Write writer(places);
    writer.threshold = THRESHOLD;
    T::ropewalk_fields(value, writer);
    writer.finish();
    if (writer.failed()) return fail(writer.error());
    written.resize(writer.at);
    if (written != control) return fail("another control part");

    // Every prefix, and every byte changed.
    for (std::size_t i = 0; i < control.size(); i++) {
        Bytes shorter(control.begin(), control.begin() + i);
        T other;
        if (read(other, shorter, parts).empty()) return fail("a prefix was taken for a message");
        for (int bit = 0; bit < 8; bit++) {
            Bytes mutant = control;
            mutant[i] ^= 1 << bit;
            T changed;
            read(changed, mutant, parts);
        }
    }
    std::printf("same\n");
}
