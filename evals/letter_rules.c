#include "evals/letter_rules.h"

#include "evals/letter_text.h"

/* The article "A" and the pronoun "I" before a small letter are no options, unless what follows is
 * one of the listed words. A letter without brackets is none before "cell" or "major", either. */
#define NO_WORD                                                                                    \
    "(?!(?<=[AI]) (?!(?:because|since|as|which|based|due|given|with|for|from"                      \
    "|and (?:is|not|[a-z]+ly not)|the (?:right|correct|best|only|most|answer)|is|would|"           \
    "rather|instead|not|but|seems|may|might|must|could|remains|fits|matches|holds|here|"           \
    "describes|has|best|only|then|exactly|correctly|satisfies|stands|wins|ist|est|es|adalah"       \
    "|it|in|on (?:this|that)|se|kwa|porque|perch|car|weil|karena|poniewa|parce)\\b)[a-z])"         \
    "(?!\xE2\x99| (?:cells?|lymphocytes?|major|minor|sharp|flat)\\b)"

/* No number comes before. A letter after a number is a unit: "4.0 J", "10^3 J". */
#define NO_UNIT "(?<![0-9] )(?<!\xC2[\xB2\xB3\xB9] )"

/* A letter that stands alone, as one of two groups. */
#define LETTER                                                                                     \
    "(?<![A-Za-z0-9-])(?:[(\\[] ?([A-J]) ?[)\\]](?![(0-9])"                                        \
    "|(?<![(\\[])" NO_UNIT "([A-J])(?![A-Za-z0-9_^=+(\\[/&%]"                                      \
    "|-[A-Za-z0-9]|'[a-ce-z](?!r\\b)| [=+] )" NO_WORD ")"

/* What may come after a letter that ends its statement. */
#define STOP                                                                                       \
    "(?=\\)?(?:[.,;:!?)\\]]|\\s?[\n\x01]|$| - | \\(|\\s(?i:because|since|as|which|based|due"       \
    "|given|with|for"                                                                              \
    "|from|in|not|rather|but|it|and|so|the|here|then|instead|by|to|over|than|is|was|would"         \
    "|on|exactly|precisely|well|perfectly|only|after|when|where)\\b"                               \
    "|\\s?\xF0|[\x80-\xFF]))"

/* A small letter with a bracket after it or at the end of a line. */
#define SMALL                                                                                      \
    "[(\\[]?(?<![A-Za-z0-9])([a-j])(?:[)\\]](?! (?!the )[a-z]{1,3}\\b|(?<=a\\)) [a-z])"            \
    "|(?=[.!]?(?:\n|$)))"

/* What may come after a letter that ends its sentence or clause. */
#define END                                                                                        \
    "(?=\\)?(?:[.,;!)\\]](?!\\w)|\\s?[\n" LETTER_YES                                               \
    "]|$| - | \\(|:\\s|\\s(?i:because|since|as|due|given|for|exactly|then|based|and not|not"       \
    "|rather|instead|which|by far)\\b"                                                             \
    "|\\s?\xF0|[\x80-\xFF]))"

/* Words and signs that may come between a statement's verb and its letter. */
#define FILL                                                                                       \
    "(?i:(?:therefore|thus|then|hence|clearly|indeed|actually|really|probably|most|likely|"        \
    "definitely|simply|just|obviously|certainly|instead|given|shown|found|stated|represented|"     \
    "listed|described|presented|by|in|be|as follows|the|following|correct|final|answer"            \
    "|option|"                                                                                     \
    "options|choice|letter|statement|alternative|selection|number|item|only|still|now|with|"       \
    "not (?:the )?(?:option |choice )?[(\\[]?[A-J][)\\]]?,? but(?: rather)?)\\b"                   \
    "|[a-z]+ly\\b|[\\s,:#=>\\-\x01]|\\.\\.+){0,14}?"

#define ADVERBS                                                                                    \
    "(?i:(?:also|indeed|therefore|thus|clearly|then|hence|the|one|only|single|most|more|best|"     \
    "likely|probably|really|actually|definitely|obviously|a|by far|logically|almost"               \
    " certainly|"                                                                                  \
    "certainly|that is|which is|in fact|overall|to be|to me|far|much|considered|most"              \
    " likely) ){0,6}+"

#define BE                                                                                         \
    "(?i:is|was|(?:would|should|must|will|can only|could only|has to|have to|ought to|got to)"     \
    "(?: (?:therefore|thus|then|hence|clearly|indeed|only|logically))? be"                         \
    "|(?:seems|appears|looks|turns out|proves)(?: to be)?|remains)"

#define NOUN                                                                                       \
    "(?i:answer|ans|option|choice|alternative|selection|pick|guess|verdict|decision|letter"        \
    "|(?:final|correct|answer)_(?:answer|option|choice|letter)|answer_?choice|conclusion"          \
    "|solution|candidate|contender"                                                                \
    "|result|response)"

/* What comes between a noun of another language and the letter. */
#define LABEL_IS                                                                                   \
    "\\s?(?:(?:" ANSWER_VERBS ")(?![a-z])|[:=]|=>| - )?\\s?(?:[:,\\s]|(?:" ANSWER_ADVERBS          \
    "|" ANSWER_ARTICLES ")(?![a-z])|[A-J](?:ではなく|じゃなく|でなく)){0,6}+"

/* A letter of another script. letter_context.c has the Latin letters for them. */
#define NATIVE                                                                                     \
    "[(\\[]?(أ|ب|ج|د|অ|ব|ড|ঢ|ক|খ|গ|ঘ|क|ख|ग|घ|ก|ข|ค|ง"          \
    "|А|Б|С|Г|ア|イ|ウ|エ|甲|乙|丙|丁)(?![A-Za-z\x80-\xFF])"

/* Words for "all other options except" and for "wrong". */
#define EXCEPT                                                                                     \
    "(?: (?i:else|other(?! than)s?|rest|remaining|of|the|these|them|options?|choices?|answers?"    \
    "|candidates?|alternatives?|possibilit(?:y|ies)|statements?)){0,5}+,? (?i:except|but"          \
    "|other than|apart from|besides|save|aside from|with the exception of)"                        \
    "(?: (?i:for|the|option|choice|answer|statement)){0,3} "
#define WRONG                                                                                      \
    "\\b(?i:rul(?:ed?|es|ing) out|eliminat\\w+|exclud\\w+|reject\\w*|discard\\w*|cross\\w*"        \
    " (?:out|off)|struck (?:out|off)|strike (?:out|off)|wrong|incorrect|false|dismiss\\w*"         \
    "|impossible|fail\\w*|violates?|contradicts?|invalid|inconsistent|drops? out)\\b"

#define RULE(name, text)                                                                           \
    {                                                                                              \
        .rule = (name), .pattern = {.regex = (text), .flags = PATTERN_LONG }                       \
    }

#define EXCLUSION(text)                                                                            \
    {                                                                                              \
        .rule = "points_to", .excludes = true, .pattern = {                                        \
            .regex = (text),                                                                       \
            .flags = PATTERN_LONG                                                                  \
        }                                                                                          \
    }

/* Statements that say which option is the answer. */
letter_rule letter_declarations[] = {
    /* "The answer is C", "Answer: C", "The correct answer to the question is therefore option C" */
    RULE("answer", "(?<![A-Za-z])" NOUN
                   "(?: (?i:choice|option|letter|here|now|this time|chosen|selected|picked))?(?:,"
                   " (?i:[a-z]+(?: [a-z]+)?),)?"
                   "(?:,? (?i:to|for|of|among|amongst|from|given|based|here|that|which|in|out of"
                   "|according|using|under|by|I|we|you|you're|key)\\b"
                   "[^.:;?!\n]{0,80}?)?,?\\s?(?:(?:" BE "|'s)(?![a-z])|[:=]|->|=>| - |\n)" FILL
                   "(?:" LETTER SINGLE
                   "|[(\\[]?([a-j])(?:(?=\\)?\\.?\\s*+(?:\n|$))|(?<!a)[)\\]]|[)\\]](?! [a-z])))"),
    RULE("answer",
         "(?:^|[\n.] ?)(?i:final |my |correct )?(?i:answer|ans\\.?)[ .]{1,2}" LETTER SINGLE
         "(?=[)\\].:]?\\.?(?:\n|$))"),
    /* "The most appropriate description is C", "The exception is C" */
    RULE("called_correct",
         "\\b(?i:correct|right(?!-| side| hand| angle| triangle)|best|(?:most|least) [a-z]+|closest"
         "|nearest|only|true"
         "|(?<=the )(?:false|incorrect|untrue)|"
         "(?<=that's |that is )(?:false|incorrect|untrue|wrong)|not (?:match|belong|fit|hold"
         "|apply|true|correct|valid|right|accurate)|appropriate|accurate|valid|proper"
         "|matching|suitable|exception|(?<=the )one|odd one|outlier|winner|strongest"
         "|safest)\\b[^.:;?!\n]{0,60}?\\s" BE "(?![a-z])" FILL LETTER SINGLE STOP),
    /* "La respuesta correcta es la C" */
    RULE("label", "(?:" ANSWER_NOUNS ")(?:\\s?(?:" ANSWER_ADJECTIVES ")(?![a-z])){0,3}+" LABEL_IS
                  "(?:" LETTER SINGLE "|" NATIVE ")"),
    RULE("label", "(?:" OPTION_NOUNS ")(?:\\s?(?:" ANSWER_ADJECTIVES
                  ")(?![a-z])){1,3}+" LABEL_IS LETTER SINGLE),
};
const size_t letter_n_declarations = sizeof letter_declarations / sizeof *letter_declarations;

/* Statements from which the chosen option follows. */
letter_rule letter_conclusions[] = {
    /* "I choose C", "I'd go with option C" */
    RULE("chosen",
         "\\b(?i:choose|choosing|chose|pick|picking|select|selecting|selected|go with|going"
         " with|opt for|opting for"
         "|say|stick with|sticking with|settle on|settling on|lean(?:ing)? (?:to|towards?|on)"
         "|vote for|guess|money on|(?<=I'd |ll |ld |we )answer(?: with)?|confident in|mark"
         "|tick|go for|conclude with|favou?r|prefer) " FILL "(?:" LETTER SINGLE STOP "|" SMALL ")"),
    /* "We keep C" */
    RULE("chosen",
         "\\b(?i:I|we|I'd|I'll|I'm|we'll|we're) (?i:(?:am|are|will|would|can|must|should|therefore"
         "|thus|then|so|finally|only|now|shall) ){0,3}"
         "(?i:keep|retain|submit|circle|lock in|bet on|land on"
         "|settle for|end up (?:with|at|on)|come down (?:on|to)|plump for|side with|back|endorse"
         "|put down|keeping|retaining|submitting|backing|landing on|betting on|siding with"
         "|locking in|ending up (?:with|at|on)) " FILL LETTER SINGLE END
         "(?![)\\]]?,? (?i:for now|for the moment|as (?:a|one) (?:possib\\w+|candidate)|in mind))"),
    /* "C gets my vote", "My vote goes to C" */
    RULE("chosen", LETTER SINGLE "[)\\]]? (?i:gets|has|takes|wins|earns|receives) (?i:my|our) "
                                 "(?i:vote|pick|nod|choice|confidence|money)\\b"),
    RULE("chosen",
         "\\b(?i:my|our) (?i:vote|money|choice|pick|bet) "
         "(?i:goes (?:to|for)|is (?:for|on|with)|falls on|lies with) " FILL LETTER SINGLE STOP),
    /* "All except C can be ruled out", "Nothing but C fits" */
    EXCLUSION(WRONG
              "[^.!?;\n]{0,60}? (?i:every(?:thing|one)?|anything|all|the)" EXCEPT LETTER SINGLE
              "(?![^.\n]{0,80}\\?)"),
    EXCLUSION("\\b(?i:every(?:thing|one)?|all|the)" EXCEPT LETTER SINGLE
              "[)\\]]?,? (?i:(?:is|are|was|were|be|been|can|could|must|may|has|have|gets?"
              "|therefore|thus|clearly|then|now|also|safely|to) ){0,5}+" WRONG
              "(?![^.\n]{0,80}\\?)"),
    EXCLUSION(
        "\\b(?i:no|none|nothing)" EXCEPT LETTER SINGLE
        "[)\\]]?,? (?i:(?:is|are|was|can|could|would|will|seems?|be|to|really|actually) ){0,4}+"
        "(?i:fits?|remains?|works?|left|correct|right|consistent|satisf\\w+|match\\w*"
        "|explains?|holds?|possible|survives?|makes? sense|meets?|agrees?|stands?|answers?)\\b"
        "(?![^.\n]{0,80}\\?)"),
    /* "This corresponds to option C", "That leaves C", "It's C" */
    RULE("points_to",
         "\\b(?i:we get|we obtain|(?:correspond(?:s|ing)?|points?|pointing|leads?|leading"
         "|equivalent|identical|equal|closest|converges?) (?:us |me |directly |clearly "
         "|uniquely |strongly |squarely )?(?:to|towards?|at)"
         "|match(?:es|ing)?|supports?|consistent (?:only )?with|agrees? (?:only )?with"
         "|agreement with|accordance with|in line with|aligns? with|in favou?r of"
         "|(?:it|this|that|which|hence|so|thus|therefore|they)(?: (?:must|has to|have to"
         "|would|should|can only|could only) be| is|'s)"
         "|leav(?:es?|ing)(?: us)?(?: with)?|left with|(?:so|thus|hence|therefore),?"
         "|conclusion,?|elimination,?|exclusion,?|deduction,?|default,?|narrow\\w* (?:it "
         "|this )?down to"
         "|(?:definitely|probably|clearly|obviously|likely|certainly|surely|must be|has to"
         " be)) " FILL LETTER SINGLE END "(?!\\)? - |, (?:[A-J]|the|there|we|it|let|consider)\\b)"),
    RULE("chosen", "\\b(?i:I (?:also |would |do |strongly |now )?(?:think|believe|vote|suspect"
                   "|conclude|guess|deduce)|(?:we|one) (?:can |may |must |thus |therefore |then"
                   " )?(?:conclude|deduce)"
                   "|inclined (?:to|towards?)|(?:it|this|that|answer) (?:seems|looks|appears|turns"
                   " out)(?: like| to be)?|it's got to be|gotta be),? (?:that )?(?:it is |it's |it"
                   " must be )?" FILL LETTER SINGLE
                   "(?=[)\\]]? to be (?:the )?(?:correct|right|best)|" END ")"),
    RULE("points_to",
         "\\b(?i:this|that|it|which|evidence|data|result|results|description|value|analysis"
         "|reasoning|observation|all of this|everything) "
         "(?i:clearly |strongly |only |best |then |thus |therefore |directly |[a-z]+ )?"
         "(?i:impl(?:y|ies)|suggests?|indicates?|confirms?|fits?|matches|favou?rs?|means|is"
         " listed as|is given (?:as|by|in)|is labell?ed) " FILL LETTER SINGLE END),
    RULE("points_to", "(?:\\b(?:is|be|get|to)|=>|=) ([A-J])\\) [A-Za-z0-9]"),
    RULE("points_to", "\\b(?i:it|this|that|answer|value)(?:'s| is|(?: [a-z]+){1,2} be) "
                      "(?:\\(([A-J])\\) [A-Z0-9]|\\(?([a-j])\\) [A-Z0-9])"),
    /* "The question has the answer C" */
    RULE("points_to",
         "\\b(?i:ha(?:s|ve)|leads? (?:us )?to|arrives? at|reach(?:es)?|receives?|wants)"
         " (?i:the )(?i:correct |right |final )?(?i:answer|option|choice) " LETTER SINGLE END),
    RULE("points_to",
         "\\b(?i:is what|is|be|by|as|equals|"
         "(?:impl(?:y|ies)|suggests?|indicates?|confirms?|fits?|matches"
         "|means|selects?|supports?)|(?:one|given|shown|described|listed|stated|represented)"
         " (?:in|as|under)|get|yields?(?: us)?|giv(?:es?|ing)(?: us)?|favou?rs?) (?:the "
         "|therefore |thus |only |indeed |exactly )?(?i:answer |correct )?(?i:option|choice"
         "|answer) " LETTER SINGLE END),
    /* "C is the correct answer", "option C seems the most plausible" */
    RULE("called_correct", LETTER SINGLE
         "\\)?(?:,? (?:rather than|and not|not|instead of|over)"
         " [(\\[]?[A-J][)\\]]?,?)?(?:(?<=\\]|\\))|(?: \\([^()\n]{1,60}\\))|(?: - |[:.)]"
         " )[^\n.:;]{1,80}?)?,? " BE " " ADVERBS
         "(?i:correct|right|answer|choice|best|just right|spot on|valid|strongest|stronger"
         "|better|closest|winner|solution|option|statement|match|"
         "(?:option|choice|answer) (?:that|which)|"
         "(?<=one )(?:that|which|left|remaining|we|supported|consistent)|true (?:statement"
         "|option|one)|(?:(?<=only )|(?<=the ))statement that|(?<=more )likely than"
         "|one(?=[.,\n]|$)|(?<=only )one|preferable|(?:remaining|viable|possible|plausible"
         "|valid|feasible|reasonable|logical) (?:option|choice|answer|one|candidate)"
         "|possibility|what remains|true and (?:is |therefore |thus |hence )?(?:our|the|my) answer"
         "|final(?=[.!,\n]|$)|(?:claim|inference|interpretation) (?:that|which)|exception"
         "|odd one|outlier|way to go|(?<=the )(?:false|incorrect"
         "|untrue) (?:one|statement|option)|(?:fully |most |only )?consistent with (?:all"
         "|the|this|that|both|our|every|these)|supported by|(?<!\\) is )it(?=[.!]|$)|(?:my"
         "|our) (?:final |best )?(?:answer|choice|pick)|what (?:we|you|I|the question)"
         "|correct(?:ly)? answer"
         "|(?<=most )[a-z]+|(?<=more )[a-z]+)\\b"
         "(?!-(?!sup)| (?:angle|triangle|if|only|when"
         "|in (?:stating|saying|that)|about|that|for)\\b|\\?)"),
    RULE("called_correct",
         "\\b(?i:mak(?:es|ing)|render(?:s|ing)) (?i:option |choice |answer )?" LETTER
         " (?i:the )?(?i:only |most \\w+ |single )?(?i:correct|right|best|answer|option"
         "|choice|winner)"),
    RULE("called_correct",
         "(?:(?:" OPTION_NOUNS ")\\s?(?:" ANSWER_ARTICLES
         ")?\\s?|(?:^|[\n.,]|(?<=[\x80-\xFF])) ?)" LETTER SINGLE "\\)?\\s?(?:" OPTION_RIGHT
         ")|\\bist (?:Option |Antwort )?([A-J]) (?:die richtige|richtig|korrekt)"),
    RULE("fits",
         "\\b(?i:only|just) (?i:option |choice |answer |statement |in |with )?" LETTER SINGLE
         "(?!\\)? (?i:is|seems|are) (?i:wrong|incorrect|false|not|plausible|possible)\\b)"),
    RULE("fits", LETTER SINGLE
         "[),]{0,2} (?i:alone |also )?(?i:best |correctly |exactly |accurately |perfectly"
         " )*(?i:(?<=correctly |exactly |accurately )[a-z]+s|makes (?:the most )?sense"
         "|sounds (?:right|correct)|aligns|gives (?:the|exactly the|us the) (?:right"
         "|correct)|states (?:exactly|precisely|this)|agrees|fits|matches|describes|captures"
         "|satisfies|explains|agrees|works|"
         "holds|remains|stands|wins|reflects|represents|answers|meets|has the (?:right"
         "|correct|most|best|strongest|greatest|highest|clearest))\\b"),
    RULE("chosen",
         "(?:[Ii]ch wähle|[Ee]lijo|[Ee]scolho|[Ss]celgo|[Jj]e choisis|[Ww]ybieram|[Ii]k kies"
         "|[Ss]aya memilih|(?:В|в)ыбираю|(?:В|в)ерным является)" LABEL_IS LETTER SINGLE),
    /* "Also bleibt nur C" */
    RULE(
        "points_to",
        "(?<![A-Za-z])(?:(?:ver)?bleibt|[Rr]este|[Qq]ueda|[Rr]esta|[Rr]imane|[Zz]ostaje|[Bb]lijft"
        "|(?:О|о)ста(?:ё|е)тся|剩下|只剩|[Tt]ersisa|เหลือ|残るのは|남는 것은)"
        "(?: (?:also|nur|noch|somit|daher|que|plus que|donc|solo|sólo|solamente|únicamente"
        "|apenas|só|somente|soltanto|tylko|alleen|dus|nog|только|hanya)|下|的|只有|了){0,3}+" LABEL_IS
            LETTER SINGLE),
    /* "C'est donc l'option C" */
    RULE("points_to", "(?<![A-Za-z])(?:[Cc]'est|[Cc]e serait|[Ee]s ist|[Dd]as ist|[Ee]s la"
                      "|[Ss]ería la|[Ii]l s'agit de)" LABEL_IS LETTER SINGLE),
    RULE("chosen",
         LETTER SINGLE "[)\\]]? (?i:as (?:my|our|the) (?:final |best )?(?:answer|choice))\\b"),
};
const size_t letter_n_conclusions = sizeof letter_conclusions / sizeof *letter_conclusions;
