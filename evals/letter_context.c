#include "evals/letter_context.h"

#include <string.h>

#include "evals/letter_rules.h"
#include "evals/letter_text.h"

enum { kLabel = 40 }; /* bytes at the start of a line in which its option is named */

static bool holds(pattern *p, span text) {
    return pattern_find(p, text, 0, NULL);
}

/* ---- letters ---- */

/* Letters of other scripts, in the order A, B, C, D. letter_rules.c matches them. */
static const char *const natives[] = {"أ", "ب", "ج",  "د",  "অ",  "ব",  "ড",  "ঢ",  "ক",  "খ", "গ",
                                      "ঘ", "क", "ख",  "ग",  "घ",  "ก",  "ข",  "ค",  "ง",  "А", "Б",
                                      "С", "Г", "ア", "イ", "ウ", "エ", "甲", "乙", "丙", "丁"};
char letter_option(span s, char last) {
    char c = s.n == 1 ? s.s[0] : '\0';
    for (size_t i = 0; s.n > 1 && i < sizeof natives / sizeof *natives; i++)
        if (s.n == strlen(natives[i]) && memcmp(s.s, natives[i], s.n) == 0)
            c = (char)('A' + i % 4);
    c = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
    return c >= 'A' && c <= last ? c : '\0';
}

letter_choice letter_of_match(const letter_paper *p, const span groups[PATTERN_GROUPS]) {
    span s = groups[1].n ? groups[1] : groups[2].n ? groups[2] : groups[3];
    char letter = s.n ? letter_option(s, p->last) : '\0';
    return letter ? (letter_choice){(size_t)(s.s - p->text.s) + 1, letter} : (letter_choice){0};
}

span letter_line(span text, size_t at) {
    size_t from = at, end = at;
    while (from && text.s[from - 1] != '\n')
        from--;
    while (end < text.n && text.s[end] != '\n')
        end++;
    return (span){text.s + from, end - from};
}

char letter_label(span line, char last) {
    static pattern label = {
        .regex = "^(?!A: ?[(\\[]?[A-J][)\\]]?\\.?$)[\x01\x02 ]*+(?:(?i:option |choice |answer )"
                 "|(?:" OPTION_NOUNS ")\\s?)?(?:[(\\[]([A-Ja-j])[)\\]]|([A-Ja-j])"
                 "(?:[).:]| - |(?<!A) \\([^()\\n]{1,80}\\)\\.?$|,? (?i:because|since)\\b"
                 "|\\s?[" LETTER_YES LETTER_NO "]|$))",
        .flags = PATTERN_LONG};
    span groups[PATTERN_GROUPS];
    if (!pattern_find(&label, line, 0, groups))
        return '\0';
    return letter_option(groups[1].n ? groups[1] : groups[2], last);
}

bool letter_in_list(const letter_paper *p, size_t at) {
    static pattern announcement = {
        .regex =
            "(?i)^(?:(?:so |now,? |first,? |okay,? )?(?:let's|let us|let me|I'll|I will|we'll"
            "|we will|I need to|we need to|we can|we must)\\b[^.\n]{0,40}?\\b(?:examine|consider"
            "|evaluate|analy[sz]e|go (?:through|over)|look at|check|assess|review|test"
            "|walk through|work through|run through|take|weigh|discuss|compare|inspect|see"
            "|study)\\b[^.\n]{0,60}(?:options|choices|statements|alternatives|answers|each|turn"
            "|candidates|one by one|one at a time|options are)\\b[^.\n]{0,40}[.:]?$"
            "|(?:the )?(?:options?|answer choices?|choices?) ?(?:analysis|evaluation|breakdown"
            "|review)?:?$)",
        .flags = PATTERN_LONG};
    size_t near = at > kLabel ? at - kLabel : 0;
    if (near && !memchr(p->text.s + near, '\n', at - near))
        return false;
    span line = letter_line(p->text, at);
    char own = letter_label(line, p->last);
    size_t from = (size_t)(line.s - p->text.s), end = from + line.n;
    if (!own)
        return false;
    while (from && p->text.s[from - 1] == '\n')
        from--;
    while (end < p->text.n && p->text.s[end] == '\n')
        end++;
    char before = from ? letter_label(letter_line(p->text, from - 1), p->last) : '\0';
    char after = end < p->text.n ? letter_label(letter_line(p->text, end), p->last) : '\0';
    bool announced = line.n > 4 && from && holds(&announcement, letter_line(p->text, from - 1));
    return (before && before != own) || (after && after != own) || announced;
}

/* ---- the sentence around a letter ---- */

span letter_sentence(span text, size_t at) {
    static pattern turn = {
        .regex = "(?i)(?:\\b(?:but|however|yet|nevertheless|in fact|correction|actually)\\b[,:]?"
                 "|\\bno[,:] |\\b(?:(?:al|even )?though|contrary to|while|whereas|despite"
                 "|since neither|because neither"
                 "|as neither|if I"
                 " had to|if forced to|if I must)\\b[^,\n]{0,150},"
                 "|(?<!e\\.g|i\\.e)[.!?;]\\s|\n)"};
    size_t from = at > LETTER_SENTENCE ? at - LETTER_SENTENCE : 0;
    span window = {text.s + from, at - from}, last[PATTERN_GROUPS];
    if (pattern_find_last(&turn, window, last)) {
        size_t skip = (size_t)(last[0].s - window.s) + last[0].n;
        window = (span){window.s + skip, window.n - skip};
    }
    return window;
}

/* The rest of the sentence or line from @at on. */
static span after(span text, size_t at) {
    static pattern end = {.regex = "[.!?]+(?:[)\\]]|\\s|$)|\n"};
    size_t n = text.n - at < LETTER_SENTENCE ? text.n - at : LETTER_SENTENCE;
    span window = {text.s + at, n}, found[PATTERN_GROUPS];
    if (pattern_find(&end, window, 0, found))
        window.n = (size_t)(found[0].s - window.s) + (found[0].s[0] == '\n' ? 0 : 1);
    return window;
}

bool letter_is_refuted(const letter_paper *p, size_t match, letter_choice c, bool excludes) {
    static pattern ahead = {
        .regex =
            "(?i)(?:\\b(?:many|most people|students?|people|person|somebody|someone|one"
            " (?:might|may|could)|you (?:might|may|could)"
            "|tempt\\w*|tempting|naive\\w*|common(?:ly)?|(?<!made a )mistake\\w*|mistakenly|wrong"
            " (?:answer|choice|option)|distractor\\w*"
            "|initial(?:ly)?|original(?:ly)?|(?<=my )first|some (?:[a-z]+ )?(?:would|might"
            "|may|say|argue|think|favou?r|prefer|choose|chose)|experts|others"
            "|at first|first glance|first instinct|i (?:first |originally |initially"
            " )?(?:thought|chose|said|wrote|picked)|i'd have said|(?<!question |problem"
            " )says|said|claims?|claimed|argues|thinks|believes"
            "|no (?:single|right|correct|one|clear)|neither|whether|assum(?:e|ing)|(?<!I"
            " )suppos(?:e|ing)|(?:to|us|will|must|should) (?:verify|check|see|show|prove"
            "|test|determine|decide) (?:that|if|whether)|player|firm|agent|hypothetically"
            "|were|why|would (?:an? )?(?:option )?[A-J] be"
            "|otherwise|unless|textbook answer|previous answer|earlier answer|question:"
            "|how|pretend|imagine"
            "|don't think|do not think|doubt\\w*"
            "|not (?:necessarily|sure|certain|convinced|clear) (?:that|if|whether)?"
            ")\\b"
            "|(?:\\b(?:not|cannot|never|unlike|than|instead of|other than|except)|n't)(?:"
            " (?:be|necessarily|the|think|believe|that|say|an?))*+ $"
            "|\\b(?:wrong|false|incorrect|first|some [a-z]+) $|\\bif (?:that |option |choice |the"
            " (?:correct )?)*+$|\\bif\\b[^.\n]*?\\bwere\\b)",
        .flags = PATTERN_LONG};
    static pattern direct = {
        .regex = "(?i)(?<![A-Za-z])(?-i:[A-J])\\s?(?:" ANSWER_OR_AND
                 ")\\s?$|(?:[(\\[]?\\b[A-J][)\\]]?,? (?:or|and|nor|and/or|versus|vs\\.?)"
                 " (?:option |choice )?|[A-J] ?[/&] ?"
                 "|\\b[A-J][)\\]]? - |\\b[A-J][)\\]]? \\([^()\n]{1,60}\\),? or "
                 "|\\b(?:equations?|eqs?\\.?|fig(?:ure)?s?\\.?|parts?|cases?|points?|steps?"
                 "|appendix|section|table|vitamin|plan|hepatitis|graph|vertex|vertices|line|examine"
                 "|examining|consider|considering|evaluat\\w+|analy\\w+|check|checking|test"
                 "|testing|try|discuss\\w*|look at|looking at|not|cannot be|never|unlike|than"
                 "|instead of|other than|except|n't|eliminat\\w+|exclud\\w+|reject\\w*"
                 "|discard\\w*|rul\\w+ out|cross\\w* out|about)"
                 " (?:the )?(?:option |choice |answer |statement )?)[(\\[]?$",
        .flags = PATTERN_LONG};
    static pattern behind = {
        .regex = "(?i)^[)\\]]?[,:]?(?:[^.;\n]{0,200}\\?| \\([^()\n]{1,60}\\),? or [(\\[]?[A-J]\\b"
                 "| - [(\\[]?(?-i:[B-J])[)\\]]? (?:is|are)\\b"
                 "|[^.,;\n]{0,80}?\\b(?:if|unless|provided|only when)\\b"
                 "|[^.\n]{0,80}?\\b(?:otherwise|if not|else|sinon|sonst|si no|senão"
                 "|altrimenti)\\b|[^.\n]{0,80}?иначе"
                 "|\\s?(?:is|are|was|seems|looks|would be|can be|could be)? ?(?:not|wrong"
                 "|incorrect|false|ruled out|eliminated|excluded|impossible|too (?:high|low"
                 "|large|small))\\b(?! (?:[(\\[]?(?-i:[A-J])\\b|only|because|option|choice))"
                 "|\\s?(?:isn't|can't|cannot|doesn't|does not|fails|contradicts|violates|could"
                 "|might|may)\\b"
                 "|[)\\]]?\\s?(?:qui |que |die |che )?(?:" ANSWER_DENIED
                 ")(?! ?[(\\[]?(?-i:[A-J])[)\\]]?(?![A-Za-z])))",
        .flags = PATTERN_LONG};
    size_t at = c.at - 1;
    span a = letter_sentence(p->text, match < at ? match : at);
    /* what lies between the start of the statement and its letter belongs to the rule, except a
     * word just before the letter */
    span near = letter_sentence(p->text, at), rest = after(p->text, at + 1);
    if (excludes)
        return holds(&ahead, a);
    return holds(&ahead, a) || holds(&direct, near) || holds(&behind, rest) ||
           letter_in_list(p, at);
}

bool letter_is_revoked(span rest) {
    static pattern revoked = {
        .regex = "(?i)\\b(?:wait|hold on|hmm+|let me (?:re\\w+|check|double)|that's wrong|that"
                 " is wrong|that's not right"
                 "|(?:can't|cannot) be right|made (?:a mistake|an error)|correction|on second"
                 " thought|misread|oops|edit(?=:)|scratch that|never ?mind)\\b"};
    static pattern confirmed = {
        .regex = "(?i)\\b(?:yes|confirm\\w*|checks out|this is (?:right|fine|correct)|that is"
                 " (?:right|fine|correct)|"
                 "that's (?:right|fine|correct)|indeed|consistent|as before|stands|holds)\\b"};
    span at[PATTERN_GROUPS];
    if (!pattern_find(&revoked, rest, 0, at))
        return false;
    size_t skip = (size_t)(at[0].s - rest.s);
    return !holds(&confirmed, (span){rest.s + skip, rest.n - skip});
}

bool letter_is_joined(span rest) {
    static pattern joined = {
        .regex =
            "(?i)\\b(?:(?:both|each|any|all(?: three| four)?) (?:of (?:these|them|those|the above"
            "|the two) |(?:answers|options|choices|boxes|letters|statements) )?(?:\\w+ )?"
            "(?:apply|applies|are|is|hold|holds|work|works|fit|fits|qualify|count|must|should"
            "|could)\\b|(?:multiple|several|two|more than one) (?:correct |right |valid )?"
            "(?:answers?|options?|choices?)\\b)"};
    return holds(&joined, rest);
}

bool letter_is_alternative(const letter_paper *p, letter_choice c) {
#define CONDITION                                                                                  \
    "\\b(?i:if|for|when|under|in case|with|without|at|where|otherwise)\\b"                         \
    "(?! (?i:this|these|those|that|all|first|the (?:reasons?|above|end))\\b)"                      \
    "(?:(?! were )[^.;\n]){0,80}?(?:\\b(?i:is|be|becomes|choose|pick|answer:?)|'s|=>)"             \
    "(?i: the| option| choice| answer)*+[ (\\[]+"
    static pattern pair = {.regex = CONDITION
                           "([A-J])[)\\]]?[,;.]? (?i:and |but |or |while |whereas )?" CONDITION
                           "(?!\\1)([A-J])(?![A-Za-z0-9']| [a-z]{4})",
                           .flags = PATTERN_LONG};
#undef CONDITION
    span groups[PATTERN_GROUPS];
    for (size_t at = 0; at <= p->text.n && pattern_find(&pair, p->text, at, groups);) {
        size_t first = (size_t)(groups[1].s - p->text.s),
               second = (size_t)(groups[2].s - p->text.s);
        if (c.at == first + 1 || c.at == second + 1)
            return true;
        at = first + 1;
    }
    return false;
}

bool letter_concludes(const letter_paper *p, letter_choice c) {
    static pattern words = {
        .regex = "(?i)\\b(?:so|therefore|thus|hence|but|however|yet|actually|instead|conclusion"
                 "|overall|in the end|finally|"
                 "ultimately|leav\\w+|only|choose|pick|go with|going with|answer|rather"
                 "|reflection|best|better|stronger|"
                 "preferable|consequently|second thought|accordingly|elimination|making"
                 "|makes)\\b[^.!?\n]*$"};
    size_t end = c.at + LETTER_SENTENCE / 4 < p->text.n ? c.at + LETTER_SENTENCE / 4 : p->text.n;
    size_t from = c.at > LETTER_SENTENCE ? c.at - LETTER_SENTENCE : 0;
    while (end > c.at && !strchr(".!?\n", p->text.s[end - 1]))
        end--;
    return holds(&words, (span){p->text.s + from, (end > c.at ? end - 1 : c.at) - from});
}
