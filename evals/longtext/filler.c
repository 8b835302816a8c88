#include "evals/longtext/filler.h"

#include <ctype.h>
#include <string.h>

/* clang-format off */
static const char *const kPeople[] = {
    "the baker", "a retired sailor", "the youngest clerk", "our neighbour", "the ferry pilot",
    "a travelling musician", "the school teacher", "the old gardener", "a quiet student",
    "the night porter", "the mayor", "a passing cyclist", "the librarian", "two carpenters",
    "the weaver", "a group of hikers", "the station cook", "the apprentice", "a visiting painter",
    "the postman", "the glazier", "my aunt", "the orchard owner", "a young engineer",
    "the choir leader", "several fishermen", "the watchmaker", "the innkeeper", "a patient nurse",
    "the bookbinder", "the surveyor", "a friendly stranger", "the beekeeper", "the bus driver",
    "both cousins", "the potter", "a tired merchant", "the shepherd", "the tailor",
    "one of the twins"};
static const char *const kActions[] = {
    "carried", "repainted", "measured", "sold", "mended", "described", "borrowed", "cleaned",
    "photographed", "forgot", "polished", "wrapped", "inspected", "sketched", "unpacked", "weighed",
    "admired", "exchanged", "assembled", "hid", "noticed", "returned", "delivered", "sorted",
    "covered", "lifted", "displayed", "praised", "dismantled", "collected", "dropped", "rinsed"};
static const char *const kQualities[] = {
    "wooden", "narrow", "heavy", "faded", "round", "painted", "cracked", "enormous", "plain",
    "crooked", "hollow", "woven", "dusty", "folded", "elegant", "rusty", "damp", "smooth",
    "borrowed", "delicate", "striped", "battered", "sturdy", "unusual", "shallow", "warm",
    "empty", "polished",
    "tilted", "ordinary", "forgotten", "ornate", "light", "worn", "tidy", "rough"};
static const char *const kThings[] = {
    "ladder", "kettle", "map", "carpet", "violin", "barrel", "umbrella", "mirror", "suitcase",
    "bench", "curtain", "basket", "teapot", "wheelbarrow", "blanket", "drawer", "rope", "candle",
    "telescope", "shelf", "bucket", "armchair", "letter box", "picture frame", "loom", "saddle",
    "compass", "flower pot", "bookcase", "trumpet", "anchor", "fishing net", "workbench", "vase",
    "toolbox", "hammock", "garden gate", "tablecloth", "chimney cap", "rowing boat", "globe",
    "sewing machine", "water pump", "bicycle", "weather vane", "notebook", "bread oven", "tent"};
static const char *const kPlaces[] = {
    "the market square", "the canal", "the railway bridge", "the old mill", "the town hall",
    "the upper meadow", "the harbour wall", "the bakery", "the northern road", "the chapel",
    "the botanical garden", "the reservoir", "the workshop", "the corner house", "the theatre",
    "the village green", "the lighthouse", "the quarry", "the tram stop", "the vineyard",
    "the swimming lake", "the post office", "the museum", "the riverbank", "the school yard",
    "the pine forest", "the fountain", "the cattle shed", "the observatory", "the ferry landing",
    "the granary", "the covered passage", "the allotments", "the boathouse", "the lower terrace"};
static const char *const kTimes[] = {
    "early in the morning", "after lunch", "before the rain came", "on the first warm day",
    "late in the evening", "during the festival", "a week later", "at the end of summer",
    "around noon", "when the shops had closed", "in the middle of winter", "soon afterwards",
    "without any hurry", "for the second time", "on the way home", "just before sunset",
    "as soon as the fog lifted", "while the soup was cooking", "at the usual hour",
    "between two meetings", "during a power cut", "on a public holiday", "after the long meeting",
    "to everyone's surprise", "for no clear reason", "in spite of the wind"};
static const char *const kWeather[] = {
    "a light drizzle fell", "the clouds moved slowly east", "the wind turned cold",
    "the sun came out again", "thick fog covered the valley", "the first snow melted quickly",
    "it stayed dry", "the air smelled of hay", "a rainbow stood over the hills",
    "the storm passed to the south", "the heat made everyone slow", "frost covered the windows",
    "the evening was unusually mild", "thunder rolled in the distance", "the leaves began to turn"};
static const char *const kOpinions[] = {
    "nobody minded", "the others agreed", "this took longer than planned", "it hardly mattered",
    "the price seemed fair", "people talked about it for days", "the work went well",
    "there was little left to say", "a small crowd gathered", "the result was better than expected",
    "no one had an explanation", "the dog barked at every step", "that was the usual custom",
    "the children found it funny", "the newspaper did not report it", "everything was quiet again"};

/* The forms of sentences. Their placeholders stand for a person (@P), an action (@V), a quality
 * (@Q), a thing (@N), a place (@L), a time (@T), the weather (@W) and an opinion (@O). */
static const char *const kForms[] = {
    "@P @V the @Q @N near @L @T.",
    "@T, @P @V a @Q @N that had been left at @L.",
    "@W, and @P stayed at @L.",
    "behind @L there was a @Q @N, and @O.",
    "@P asked about the @N, but @O.",
    "although @W, @P @V the @N @T.",
    "the @N from @L was @Q and a little @Q.",
    "@T @W, so the walk to @L had to wait.",
    "@P and @P met at @L @T.",
    "some people preferred the @Q @N to the @Q one.",
    "it was @P who first @V the @N.",
    "from @L one could see a @N, a @N and a @Q @N.",
    "@O when @P @V the @Q @N.",
    "the road past @L was closed, because @P @V a @N there.",
    "@P told a long story about a @Q @N.",
    "there is still a @Q @N inside @L.",
    "@P never explained why the @N was so @Q.",
    "@T, the @N was moved from @L to @L.",
    "a @Q @N stood between @L and @L.",
    "@P wanted to buy the @N, yet @O.",
    "once @W, @P walked slowly to @L.",
    "everyone at @L remembered the @Q @N.",
    "@P @V the @N, and @P @V the @N.",
    "because @W, the @N near @L became @Q.",
    "@T, @O, and @P went back to @L.",
    "the letter mentioned @L, a @N and @P.",
    "not far from @L, @P rested beside a @Q @N.",
    "the @Q @N belonged to @P, or so it was said.",
    "for a while @P lived close to @L.",
    "@P placed the @Q @N on top of the @N @T.",
    "nothing at @L was as @Q as the @N.",
    "if @P had known about the @N, the visit to @L would have been shorter.",
    "@W while @P @V the @N.",
    "in the afternoon @P showed the @Q @N to @P.",
    "most of the visitors came to @L for the @N.",
    "the repairs at @L were finished @T, and @O.",
};
/* clang-format on */

#define LIST(a)                                                                                    \
    (list) {                                                                                       \
        (a), (uint32_t)(sizeof(a) / sizeof *(a))                                                   \
    }

typedef struct {
    const char *const *at;
    uint32_t n;
} list;

enum { kFormCount = sizeof kForms / sizeof *kForms };

static list list_of(char slot) {
    switch (slot) {
    case 'P':
        return LIST(kPeople);
    case 'V':
        return LIST(kActions);
    case 'Q':
        return LIST(kQualities);
    case 'N':
        return LIST(kThings);
    case 'L':
        return LIST(kPlaces);
    case 'T':
        return LIST(kTimes);
    case 'W':
        return LIST(kWeather);
    default:
        return LIST(kOpinions);
    }
}

static const char *draw(rng *r, list l) {
    return l.at[rng_below(r, l.n)];
}

static bool is_recent(const filler *f, int form) {
    for (int i = 0; i < FILLER_RECENT; i++)
        if (f->recent[i] == form + 1)
            return true;
    return false;
}

static const char *choose_form(filler *f) {
    int form;
    do
        form = (int)rng_below(&f->random, kFormCount);
    while (is_recent(f, form));
    f->recent[f->next] = form + 1;
    f->next = (f->next + 1) % FILLER_RECENT;
    return kForms[form];
}

void filler_sentence(filler *f, buf *out) {
    const char *form = choose_form(f), *last = "";
    size_t start = out->len;
    while (*form) {
        size_t n = strcspn(form, "@");
        (void)buf_append(out, form, n);
        form += n;
        if (!*form)
            break;
        const char *word;
        do
            word = draw(&f->random, list_of(form[1]));
        while (word == last); /* not "the baker and the baker" */
        (void)buf_puts(out, word);
        last = word;
        form += 2;
    }
    if (!out->failed)
        out->data[start] = (char)toupper((unsigned char)out->data[start]);
}

void filler_word(rng *r, buf *out) {
    const char *word = draw(r, rng_below(r, 2) ? LIST(kThings) : LIST(kQualities));
    (void)buf_append(out, word, strcspn(word, " "));
}
