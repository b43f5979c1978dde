/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Fuzzes the first line of scripts: libFuzzer's entry, and with -DREPLAY a main (fuzz_replay.h).
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -I. tracer/shebang.c tests/fuzz_shebang.c
 *   gcc -g -fsanitize=address,undefined -DREPLAY ... ; ./fuzz_shebang [FILE...]
 *
 * With FILES it also prints what was made of each: "0", "-8", or "1 [interpreter] [argument]".
 */
#include "fuzz_replay.h"

#include <errno.h>

#include "../tracer/shebang.h"

static void check_word(const char *word, const char *what) {
    hold(memchr(word, '\0', SHEBANG_SIZE) != NULL, what);
    hold(strchr(word, '\n') == NULL, what);
    hold(word[0] != ' ' && word[0] != '\t', what);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char head[SHEBANG_SIZE] = {0}, before[SHEBANG_SIZE];
    struct shebang shebang;
    int answer;

    memcpy(head, data, size < sizeof(head) ? size : sizeof(head));
    memcpy(before, head, sizeof(head));
    memset(&shebang, 0x7f, sizeof(shebang)); /* nothing may be left as it was */
    answer = shebang_parse(head, &shebang);
    hold(memcmp(head, before, sizeof(head)) == 0, "the head is only read");
    hold(answer == 0 || answer == 1 || answer == -ENOEXEC, "an answer that execve has");
    hold((answer == 0) == (head[0] != '#' || head[1] != '!'), "a script begins with its mark");
    if (answer == 1) {
        check_word(shebang.interpreter, "the interpreter is a word");
        check_word(shebang.argument, "the argument is a word");
        hold(strpbrk(shebang.interpreter, " \t") == NULL, "the interpreter has no blanks");
        hold(shebang.has_argument || !shebang.argument[0], "no argument, no text");
    }
#ifdef REPLAY
    if (getenv("FUZZ_PRINT")) {
        printf("%d", answer);
        if (answer == 1)
            printf(shebang.has_argument ? " [%s] [%s]" : " [%s]", shebang.interpreter, shebang.argument);
        putchar('\n');
    }
#endif
    return 0;
}

#ifdef REPLAY
size_t make_input(uint8_t *data, size_t room) {
    static const char letters[] = "#!  \t\t\n\0/ab\r";
    size_t size = (size_t)rand() % 300;

    (void)room;
    for (size_t n = 0; n < size; n++)
        data[n] = (uint8_t)(rand() % 8 ? 'a' : letters[(size_t)rand() % (sizeof(letters) - 1)]);
    if (size >= 2 && rand() % 8)
        memcpy(data, "#!", 2);
    return size;
}
#endif
