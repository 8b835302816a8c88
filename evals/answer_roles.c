/* The answer of a sentence with several amounts: the 12 of "After giving 5 of them away, Tom has 12
 * apples left over from the 17." Each amount has a role in its sentence. A sentence states an
 * amount as its subject, its object or after "is". It gives other amounts in phrases with a
 * preposition, after "the" or "his", and in subordinate clauses. */
#include <string.h>

#include "evals/answer_parts.h"

#define ONES   "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
#define AMOUNT "\\\\?\\$?[0-9][0-9,]*+(?:\\.[0-9]+)?"

/* How far an amount is from being what the sentence states, the nearest first. */
typedef enum {
    ROLE_STATED,
    ROLE_ADJUNCT, /* "in 3 hours" */
    ROLE_GIVEN,   /* "the 3 hours", "to save $500", "because 3 are red" */
} amount_role;

typedef struct {
    span s;
    amount_role role;
} amount;

enum { kAmounts = 8 };

/* True if the sentence has a formula, signs between numbers, a list or marked text, which are read
 * in other ways, or a word that makes a pair of numbers one value. */
static bool is_formal(span sentence) {
    static pattern formal = {
        .flags = PATTERN_LONG,
        .regex =
            "(?i)(?<!\\\\)\\$(?![0-9])|[0-9]\\$|\\\\(?![$%])|[=^_{}<>|~*`?#]|\xE2\x89|\xE2\x88\x9A|"
            "\xC2[\xB1-\xB3\xBC-\xBE]|\xCF\x80|\xE2\x86\x92|"
            "[0-9)] ?(?:[-+/]|\xC3\x97|\xC3\xB7|\xE2\x88\x92|\xC2\xB7|\xE2\x80\x93) ?[($]*[0-9(]|"
            "[0-9]:[0-9]|\\([^a-z()]*\\)|[0-9] (?:days?|weeks?|hours?|minutes?|tons?|"
            "feet|years?|months?), which is " AMOUNT
            " [a-z]+[.]?$|[0-9] (?:to|by|over) (?:about )?\\\\?\\$?[0-9]|"
            "(?<!of |both |between )(?<![0-9.,$])[0-9][0-9,.]*+,? (?:and|or) "
            "\\\\?\\$?[0-9]+(?! [a-z]+ [a-z])|[0-9], [0-9]+(?:,|[.!]?$)|^[^a-z]*[a-z]*:|"
            "\\b(?:probability|chances?|odds|ratio|fraction|mod|modulo|base|remainder|divided|"
            "plus|minus|squared|or(?! [0-9.]+%)|neither|nor|if|either|respectively|each other|"
            "every other|x|y|n|k|wrong|incorrect|mistake|tempting|(?:we|i) (?:double|halve|"
            "triple|add|subtract|multiply|divide))\\b"};
    return pattern_find(&formal, sentence, 0, NULL);
}

/* The clause that gives a result after other amounts: the "50%" of "14 of the 28 pupils walk, which
 * is 50%.". Otherwise the main clause. */
static span result_clause(span sentence) {
    static pattern result = {
        .regex = "(?i)[0-9][^0-9]+[0-9](?:[^,;]|,(?=[0-9]{3}))*,\\s(?:(?:which|this|that) "
                 "(?:is|was|means|leaves|makes|gives|equals|comes to)|meaning|making|leaving|"
                 "giving|or(?= [0-9.]+%))\\s(?=[^0-9,;]*[0-9])(?![^,;]*\\b(?:than|as|half|twice)"
                 "\\b)"};
    static pattern gerund = {.regex = "^[A-Z][a-z]+ing\\s[^,]*,\\s(?=.*[0-9])"};
    static pattern digit = {.regex = "[0-9]"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&result, sentence, 0, groups) || pattern_find(&gerund, sentence, 0, groups))
        return span_from(sentence, groups[0].s + groups[0].n);
    span main = answer_main_clause(sentence);
    return pattern_find(&digit, main, 0, NULL) ? main : sentence;
}

/* The result clause without subordinate clauses and additions at its end. */
static span stated_part(span sentence) {
    static pattern clause = {
        .flags = PATTERN_LONG,
        .regex =
            "(?i)(?<=[a-z0-9%])(?:[,;]?\\s(?:while|whereas|because|since|before|once|when|until|"
            "although|though|"
            "after (?:(?:the |all )?[0-9]+ (?:[a-z]+ )?(?:are|is|have|has|were)|he|she|they|it|we)|"
            "as (?=\\S+ (?:[a-z]+ )?(?:are|is|was|were|has|have|had|did|will)\\b)|"
            "(?:considering|given|assuming|including|excluding|counting|compared|having|"
            "rather than|instead of|after [a-z]+ing)(?!.* (?:is|are|was|costs?|comes|equals)\\b))\\b|"
            "[,;]\\s(?:twice|half|double|triple|(?:two|three|four|five|[0-9]+) times|the same|just "
            "as|(?:and )?not|up|down|" AMOUNT "(?: [a-z]+)? (?:in|for|per|on|to|at|from) (?:each|"
            "every|a)|" AMOUNT "(?: [a-z]+)? (?:each|apiece|(?:more|less|fewer|[a-z]+er) than)|"
            "(?:the|an?) [a-z]+ (?:of|from|for))\\b|\\s(?:and )?not " AMOUNT "|:\\s(?=" AMOUNT
            " [a-z]+(?:,| and) )|\\s\\([^()]*\\)[.!]?$)"};
    static pattern digit = {.regex = "(?i)[0-9]|\\b(?:" ONES ")\\b|^One "};
    span s = result_clause(sentence), groups[PATTERN_GROUPS];
    for (size_t from = 0; pattern_find(&clause, s, from, groups);) {
        span before = {s.s, (size_t)(groups[0].s - s.s)};
        if (pattern_find(&digit, before, 0, NULL))
            return before;
        from = before.n + groups[0].n;
    }
    return s;
}

/* True if the words before an amount make it part of a phrase such as "in 3 hours", "of 24 pens",
 * "with his other 5". After some words a preposition states the result: "adds up to 70", "a profit
 * of $120", "in total 45". */
static bool is_adjunct(span before) {
    static pattern phrase = {
        .regex = "(?i)\\b(?:in|for|of|from|at|over|within|on|onto|with|to|per|than|as|among|under|"
                 "above|below|against|during|after|before|into|between|around|"
                 "through|without|out of)\\s(?:(?:only|about|all|a|an|another|one|first|"
                 "last|next|full|more|less|day|week|page|year|age|" AMOUNT
                 " and|length|side|height|width|step|grade|size|radius|turn) )*$"};
    static pattern states = {
        .regex =
            "(?i)\\b(?:(?:come|came|coming|add|amount|sum|grow|grew|rise|rose|increase|go|went|"
            "drop|fall|fell|reduce|bring|work|equal|lead|up|down|back|close)[a-z]*(?: (?:up|out|"
            "down|back|it|that|this|the [a-z]+))? to|from " AMOUNT "(?: [a-z]+)? to|"
            "(?:total|sum|average|mean|product|difference) of|"
            "(?<!in |for |from |at |over |within |with |after )\\ban? "
            "(?:(?!with|of|in|for|from|at)[a-z]+ ){1,3}of|(?:arrive|end|stand|stay|start|"
            "finish|remain)[a-z]*(?: up)? (?:at|with)|left with|consists? of|gets? through|"
            "enough for|belongs? to|in (?:total|all|fact|the end)|at (?:least|most))"
            "(?: (?:a total of|only|about|exactly|another))?\\s$"};
    return pattern_find(&phrase, span_tail(before, 60), 0, NULL) &&
           !pattern_find(&states, span_tail(before, 80), 0, NULL);
}

/* True if the words before an amount say that it is known: "the 28 pupils", "his $9", "(7 boxes)",
 * or what a purpose or a relative clause names: "to save $500", "the number that 7 divides". */
static bool is_given(span before) {
    static pattern known = {
        .regex = "(?i)(?:\\b(?:the|his|her|their|its|my|our|these|those|both|all|"
                 "(?!that|there|it|he|she|what|here|let)[a-z]+(?:'|\u2019)s)"
                 "(?: (?:other|first|last|next|total|original|same|remaining|of|initial|given))?"
                 "\\s|\\([^()]*)$"};
    static pattern remaining = {
        .regex = "(?i)\\b(?:is|are|was|were|gives?|leaves?|makes?) (?:the|his|her|their|its)"
                 "(?: (?:other|remaining|last|total))?\\s$"};
    static pattern purpose = {
        .regex = "(?i)(?<!have |has |had |need |needs |needed |able |going |gets |get |used |wants "
                 "|want |hopes |plans |likely |expected |supposed |ought )\\bto (?!be\\b|which\\b|"
                 "(?:the|his|her|their|a|an|each)\\b)[a-z]+ (?:[a-z]+ ){0,3}$"};
    static pattern relative = {.regex =
                                   "(?i)\\b(?:number|integer|value|amount|one|day|year)s? that "
                                   "(?:[a-z0-9]+ )*$"};
    return (pattern_find(&known, span_tail(before, 60), 0, NULL) &&
            !pattern_find(&remaining, span_tail(before, 60), 0, NULL)) ||
           pattern_find(&purpose, span_tail(before, 80), 0, NULL) ||
           pattern_find(&relative, span_tail(before, 80), 0, NULL);
}

static amount_role role_of(span before) {
    return is_given(before) ? ROLE_GIVEN : is_adjunct(before) ? ROLE_ADJUNCT : ROLE_STATED;
}

/* Finds the amounts of a sentence. Returns their number; 0 if there are more than kAmounts. */
static int find_amounts(span sentence, amount *out) {
    static pattern number = {
        .regex =
            "(?i)(?<![\\w.,/:-])(?:\\\\?\\$)?(-?[0-9]++(?:,[0-9]{3})*+(?:\\.[0-9]+)?+)"
            "(?:\\s?%|(?![0-9A-Za-z:/%\\xC2]|-[a-z]))|\\b((?:" ONES ")\\b|^One\\b(?= (?!of|can|"
            "way|more|could|might)[a-z]))(?![-0-9]| "
            "(?:hundred|thousand|times|thirds?|quarters?|fifths?|sixths?|eighths?|tenths?))"};
    span groups[PATTERN_GROUPS];
    int n = 0;
    for (size_t from = 0; pattern_find(&number, sentence, from, groups);) {
        if (n == kAmounts)
            return 0;
        span s = groups[groups[1].s ? 1 : 2];
        out[n++] = (amount){s, role_of((span){sentence.s, (size_t)(groups[0].s - sentence.s)})};
        from = (size_t)(groups[0].s + groups[0].n - sentence.s);
    }
    return n;
}

/* The amount whose role is nearest to the result. If two have this role, the later one if the
 * earlier one is the subject of a verb that states it ("3 pens cost $9") or is in a clause of its
 * own ("13 seats are taken, and 7 are free"). Otherwise NULL. */
static const amount *result_of(const amount *a, int n) {
    static pattern verb = {
        .regex =
            "(?i)\\b(?:is|are|makes?|equals?|becomes?|comes? to|(?:adds? up|amounts?) to|"
            "totals?|costs?|weighs?|gives?|yields?|have|has|contains?|holds?|belongs?|means|pays?|gets?|needs?|takes?|"
            "earns?|covers?)\\b"};
    static pattern joint = {.regex = "(?i)[,;:]\\s|\\b(?:and|but|then)\\b"};
    static pattern clause = {
        .regex = "(?i)\\b(?:is|are|was|were|has|have|had|[a-z]+ed|[a-z]+s)\\b.*(?:;|, (?:and|but))"
                 "\\s(?:[a-z]+ ){0,4}\\\\?\\$?$"};
    const amount *best = &a[0];
    for (int i = 1; i < n; i++)
        if (a[i].role < best->role)
            best = &a[i];
    for (const amount *next = best + 1; next < a + n; next++) {
        if (next->role != best->role)
            continue;
        const char *end = best->s.s + best->s.n;
        span between = {end, (size_t)(next->s.s - end)};
        bool object =
            pattern_find(&verb, between, 0, NULL) && !pattern_find(&joint, between, 0, NULL);
        if (next->role != ROLE_STATED || (!object && !pattern_find(&clause, between, 0, NULL)))
            return NULL;
        best = next;
    }
    return best;
}

/* True if the words after an amount deny it: "7 is too small". */
static bool is_denied(span after) {
    static pattern denial = {
        .regex = "(?i)^\\s*(?:(?:is|are|was|does|do|can)(?: not|n't)\\b|is too\\b|fails|divides|"
                 "exceeds|cannot\\b)"};
    return pattern_find(&denial, after, 0, NULL);
}

void answer_add_amount(found_answer *a, span text, span sentence) {
    amount all[kAmounts], stated[kAmounts];
    if (is_formal(sentence) || find_amounts(sentence, all) < 2)
        return;
    span part = stated_part(sentence);
    int n = find_amounts(part, stated);
    const amount *best = n ? result_of(stated, n) : NULL;
    if (!best || answer_is_limited((span){part.s, (size_t)(best->s.s - part.s)}) ||
        is_denied(span_from(part, best->s.s + best->s.n)))
        return;
    extraction x = {"amount", best->s};
    answer_add_number(a, text, &x);
}
