#include "evals/ifeval/small_words.h"

#include <stdio.h>
#include <string.h>

#include "evals/ifeval/letters.h"

enum { kWord = 24, kLongest = 10000 };

/* ---- scripts ---- */

typedef struct {
    uint32_t from, to;
    const char *code; /* the language, if the script determines it; NULL: small words decide */
} script;

enum { LATIN, CYRILLIC, ARABIC, DEVANAGARI };
static const script scripts[] = {
    {'A', 0x24f, NULL},     {0x400, 0x52f, NULL}, {0x600, 0x6ff, NULL},   {0x900, 0x97f, NULL},
    {0x370, 0x3ff, "el"},   {0x590, 0x5ff, "he"}, {0x980, 0x9ff, "bn"},   {0xa00, 0xa7f, "pa"},
    {0xa80, 0xaff, "gu"},   {0xb80, 0xbff, "ta"}, {0xc00, 0xc7f, "te"},   {0xc80, 0xcff, "kn"},
    {0xd00, 0xd7f, "ml"},   {0xe00, 0xe7f, "th"}, {0x3040, 0x30ff, "ja"}, {0x4e00, 0x9fff, "zh-cn"},
    {0xac00, 0xd7af, "ko"},
};
enum { SCRIPTS = sizeof scripts / sizeof *scripts };

static int script_of(uint32_t c) {
    bool sign = c < 0xc0 && !((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'));
    if (c >= 0x1e00 && c <= 0x1eff)
        return LATIN;
    for (int i = 0; i < SCRIPTS && !sign; i++)
        if (c >= scripts[i].from && c <= scripts[i].to)
            return i;
    return -1;
}

/* The script of most letters; -1 if the text has no letters of these scripts. Latin letters count
 * half, because they may be names and terms. A text with mostly Chinese characters is Japanese if
 * it also has more than a tenth as many kana. */
static int main_script(span text) {
    size_t count[SCRIPTS] = {0};
    int most = -1, kana = 0, han = 0;
    for (size_t at = 0; at < text.n;) {
        int s = script_of(letters_next(text, &at));
        if (s >= 0)
            count[s] += s == LATIN ? 1 : 2;
    }
    for (int i = 0; i < SCRIPTS; i++) {
        if (count[i] && (most < 0 || count[i] > count[most]))
            most = i;
        if (scripts[i].from == 0x3040)
            kana = i;
        if (scripts[i].from == 0x4e00)
            han = i;
    }
    return most == han && 10 * count[kana] > count[han] ? kana : most;
}

/* ---- small words ---- */

typedef struct {
    int script;
    const char *code, *words; /* separated by spaces, in lower case */
} language;

static const language languages[] = {
    {LATIN, "en",
     " the and of to in is that it for was with as on be are this by you not have from "},
    {LATIN, "de",
     " der die und das ist nicht ein eine zu den mit von sich auf für im dem es ich auch "},
    {LATIN, "es", " el la los las que y en un una es por con para del se no como más pero su lo "},
    {LATIN, "fr",
     " le la les des et est un une que pour dans qui pas sur au du ce il je vous avec "},
    {LATIN, "it", " il la che di e è un una per non con sono del della gli le si come più ma "},
    {LATIN, "pt", " o os as que e de um uma para com não é do da em por se mais como mas ao "},
    {LATIN, "nl", " de het een en van is dat niet op te zijn voor met die aan er ook maar "},
    {LATIN, "pl", " i w na nie że się jest z do to jak o po ale co jego przez dla "},
    {LATIN, "fi", " ja on ei että se hän oli olla mutta kun myös ovat joka tai niin kuin voi "},
    {LATIN, "sv", " och att det som en är på för av med inte den till har ett om jag var "},
    {LATIN, "tr", " ve bir bu için ile da de çok olarak daha olan gibi ne kadar ama var "},
    {LATIN, "vi", " là và của có không một được trong cho người với các này đã những bạn tôi "},
    {LATIN, "sw", " na ya wa kwa ni la katika za kuwa hii cha si yake lakini huu hiyo kama watu "},
    {LATIN, "id", " yang dan di untuk dengan ini dari itu tidak pada dalam adalah akan saya "},
    {LATIN, "cs", " a je se na že v to s z do jsem jako ale by byl podle které není "},
    {LATIN, "ro", " și în de la a cu nu este care pe un o din pentru mai sau că "},
    {CYRILLIC, "ru", " и в не на что я с он как это по но они мы был для из ты вы от "},
    {CYRILLIC, "uk", " і в не на що я з та він як це до але ми був для від є у їх ви "},
    {CYRILLIC, "bg", " и на да се е за от не с в са по като но това си ще или има "},
    {CYRILLIC, "mk", " и на да се е за од не со во ќе по како но тоа си или има "},
    {ARABIC, "ar", " في من على أن إلى هذا لا ما هو التي الذي مع كان عن و هذه كل لم "},
    {ARABIC, "fa", " در و به از که این را با است برای آن یک می های شود بر خود ما من هم "},
    {ARABIC, "ur", " کے کی میں ہے اور سے کا کو پر نے ہیں کہ یہ اس بھی ایک نہیں تھا کر "},
    {DEVANAGARI, "hi", " के है में की और से का को पर ने हैं कि यह भी एक नहीं था कर इस हो मैं "},
    {DEVANAGARI, "mr", " आहे आणि आहेत या हे तो ती व नाही होते असे मी तर हा करून साठी मध्ये एक "},
    {DEVANAGARI, "ne", " छ र को मा छन् यो पनि हुन् लागि गर्न एक भएको तपाईं हो गरेको हुन्छ म "},
};
enum { LANGUAGES = sizeof languages / sizeof *languages };

static uint32_t small(uint32_t c) {
    if (!letters_is_upper(c))
        return c;
    if (c >= 0x400 && c <= 0x40f)
        return c + 80;
    return c >= 0x100 && c != 0x178 && (c < 0x386 || c > 0x42f) ? c + 1 : c + 32;
}

static void put(char word[kWord * 4], size_t *n, uint32_t c) {
    char s[4];
    size_t k = 0;
    if (c < 0x80) {
        s[k++] = (char)c;
    } else if (c < 0x800) {
        s[k++] = (char)(0xc0 | c >> 6);
        s[k++] = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        s[k++] = (char)(0xe0 | c >> 12);
        s[k++] = (char)(0x80 | (c >> 6 & 0x3f));
        s[k++] = (char)(0x80 | (c & 0x3f));
    }
    if (*n + k + 2 < kWord * 4) {
        memcpy(word + *n, s, k);
        *n += k;
    }
}

static void count_word(const char *word, int of, size_t hits[LANGUAGES]) {
    for (int i = 0; i < LANGUAGES; i++)
        hits[i] += languages[i].script == of && strstr(languages[i].words, word) != NULL;
}

/* The code of the language of script @of that has the most small words in the text. */
static const char *by_words(span text, int of) {
    size_t hits[LANGUAGES] = {0}, n = 1;
    char word[kWord * 4] = " ";
    int best = -1;
    for (size_t at = 0; at <= text.n;) {
        uint32_t c = ' '; /* ends the last word */
        if (at < text.n)
            c = letters_next(text, &at);
        else
            at++;
        if (script_of(c) == of) {
            put(word, &n, small(c));
            continue;
        }
        memcpy(word + n, " ", 2);
        if (n > 1)
            count_word(word, of, hits);
        n = 1;
    }
    for (int i = 0; i < LANGUAGES; i++)
        if (languages[i].script == of && (best < 0 || hits[i] > hits[best]))
            best = i;
    return languages[best].code;
}

bool small_words_detect(span text, char code[LANGUAGE_CODE]) {
    text.n = text.n < kLongest ? text.n : kLongest;
    int s = main_script(text);
    const char *found = s < 0 ? "" : scripts[s].code ? scripts[s].code : by_words(text, s);
    (void)snprintf(code, LANGUAGE_CODE, "%s", found);
    return s >= 0;
}
