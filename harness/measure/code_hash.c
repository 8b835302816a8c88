#include "harness/measure/code_hash.h"

#include <elf.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"

enum { kCudaMachine = 190 };

static const char kSelf[] = "/proc/self/exe";

/* Steps also run kernels from these files; only steps of the portable kernels run those of combine.
 * The names of the kernels contain these names. */
static const char *const kStepFiles[] = {"sched_cu", "combine_cu", "dataflow_cu", "prepare_cu"};

static bool inside(uint64_t offset, uint64_t size, size_t n) {
    return offset <= n && size <= n - offset;
}

static bool section_at(const unsigned char *image, size_t n, const Elf64_Ehdr *head, unsigned i,
                       Elf64_Shdr *out) {
    uint64_t at = head->e_shoff + (uint64_t)i * sizeof *out;
    if (head->e_shentsize != sizeof *out || head->e_shoff > n || !inside(at, sizeof *out, n))
        return false;
    memcpy(out, image + at, sizeof *out);
    return true;
}

static bool named_text(const unsigned char *image, size_t n, const Elf64_Shdr *names,
                       const Elf64_Shdr *s) {
    static const char kName[] = ".text";
    if (!inside(names->sh_offset, names->sh_size, n) || names->sh_size < sizeof kName ||
        s->sh_name > names->sh_size - sizeof kName)
        return false;
    return memcmp(image + names->sh_offset + s->sh_name, kName, sizeof kName) == 0;
}

snap_status code_find_text(const void *image, size_t n, size_t *offset, size_t *size,
                           snap_err *err) {
    const unsigned char *bytes = image;
    Elf64_Ehdr head;
    Elf64_Shdr names, s;
    if (n < sizeof head || memcmp(bytes, ELFMAG, SELFMAG) != 0 || bytes[EI_CLASS] != ELFCLASS64)
        return err_set(err, SNAP_E_UNSUPPORTED, "the program is not a 64-bit ELF file");
    memcpy(&head, bytes, sizeof head);
    if (!section_at(bytes, n, &head, head.e_shstrndx, &names))
        return err_set(err, SNAP_E_UNSUPPORTED, "the program has no section names");
    for (unsigned i = 0; i < head.e_shnum && section_at(bytes, n, &head, i, &s); i++)
        if (named_text(bytes, n, &names, &s) && inside(s.sh_offset, s.sh_size, n)) {
            *offset = s.sh_offset;
            *size = s.sh_size;
            return SNAP_OK;
        }
    return err_set(err, SNAP_E_UNSUPPORTED, "the program has no .text section");
}

snap_status code_hash_self(char out[HASH_HEX], snap_err *err) {
    buf image = {0};
    size_t offset = 0, size = 0;
    snap_status st = fs_read(kSelf, &image, err);
    if (st == SNAP_OK)
        st = code_find_text(image.data, image.len, &offset, &size, err);
    if (st == SNAP_OK)
        st = hash_bytes(image.data + offset, size, out, err);
    buf_release(&image);
    return st;
}

/* ---- device code ---- */

/* The name of section @s, within the image; "" for a bad one. */
static const char *section_name(const unsigned char *image, size_t n, const Elf64_Shdr *names,
                                const Elf64_Shdr *s) {
    if (!inside(names->sh_offset, names->sh_size, n) || s->sh_name >= names->sh_size)
        return "";
    const char *name = (const char *)image + names->sh_offset + s->sh_name;
    size_t room = names->sh_size - s->sh_name;
    return memchr(name, '\0', room) ? name : "";
}

static void append_sections(const unsigned char *image, size_t n, const Elf64_Ehdr *head,
                            const char *kernel, buf *out) {
    static const char kCode[] = ".text.";
    Elf64_Shdr names, s;
    if (!section_at(image, n, head, head->e_shstrndx, &names))
        return;
    for (unsigned i = 0; i < head->e_shnum && section_at(image, n, head, i, &s); i++) {
        const char *name = section_name(image, n, &names, &s);
        if (strncmp(name, kCode, strlen(kCode)) == 0 && strstr(name, kernel) &&
            inside(s.sh_offset, s.sh_size, n))
            (void)buf_append(out, image + s.sh_offset, s.sh_size);
    }
}

void code_find_device(const void *image, size_t n, const char *kernel, buf *out) {
    const unsigned char *bytes = image, *at = bytes;
    Elf64_Ehdr head;
    while ((at = memmem(at, n - (size_t)(at - bytes), ELFMAG, SELFMAG)) != NULL) {
        size_t left = n - (size_t)(at - bytes);
        if (left >= sizeof head) {
            memcpy(&head, at, sizeof head);
            if (at[EI_CLASS] == ELFCLASS64 && head.e_machine == kCudaMachine)
                append_sections(at, left, &head, kernel, out);
        }
        at += SELFMAG;
    }
}

snap_status code_hash_device(const char *kernel, char out[HASH_HEX], snap_err *err) {
    buf image = {0}, code = {0};
    snap_status st = fs_read(kSelf, &image, err);
    if (st == SNAP_OK)
        code_find_device(image.data, image.len, kernel, &code);
    if (st == SNAP_OK && !code.len)
        st = err_set(err, SNAP_E_UNSUPPORTED, "the program has no device code of '%s'", kernel);
    for (size_t i = 0; i < sizeof kStepFiles / sizeof *kStepFiles && st == SNAP_OK; i++)
        code_find_device(image.data, image.len, kStepFiles[i], &code);
    if (st == SNAP_OK)
        st = buf_check(&code, "the program's device code", err);
    if (st == SNAP_OK)
        st = hash_bytes(code.data, code.len, out, err);
    buf_release(&image);
    buf_release(&code);
    return st;
}

/* The path in "plugin:PATH" or "python:FILE"; NULL for other backends. */
static const char *path_of(const char *backend) {
    static const char *const kinds[] = {"plugin:", "python:"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (text_starts(backend, kinds[i]))
            return backend + strlen(kinds[i]);
    return NULL;
}

bool code_is_file(const char *backend) {
    return path_of(backend) != NULL;
}

snap_status code_hash_of(const char *backend, const char *kernel, char out[HASH_HEX],
                         snap_err *err) {
    if (code_is_file(backend))
        return hash_file(path_of(backend), out, err);
    if (kernel)
        return code_hash_device(kernel, out, err);
    if (text_equal(backend, "opencl"))
        return err_set(err, SNAP_E_UNSUPPORTED, "the device's driver compiles the code");
    return code_hash_self(out, err);
}
