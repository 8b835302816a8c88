#include <string.h>

#include "evals/ifeval/punkt.h"

/* English abbreviations in lower case, separated by spaces. Punkt's English parameters, trained on
 * newspapers, lack abbreviations that usually end a sentence ("etc.") and also "e.g." and "i.e.",
 * so these are not in the list. The single letters are those that Punkt takes for abbreviations. */
static const char kAbbreviations[] =
    " mr mrs ms dr prof st sr jr rep reps sen gen col maj lt adm messrs inc corp co ltd bros cie "
    "cos vs v "
    "jan feb aug sept sep oct nov dec tues wed fri ave ft mg yr ct ok sw "
    "ala ariz calif colo conn fla ga ill kan ky mich minn nev okla ore pa tenn va vt wash wis "
    "c d e f g h k l m n p r s t w ph.d p.m a.m u.s u.k u.n u.s.a d.c n.y n.j n.c s.c r.i n.h n.m "
    "l.a w.va "
    "b.v n.v s.a a.g m.b.a c.v u.s.s.r a.d a.s j.p j.r j.b j.c j.j j.k r.j r.h t.j m.j h.f ";

/* Words that begin a sentence if they follow an abbreviation or an ellipsis and their first letter
 * is a capital. */
static const char kStarters[] =
    " according although among both but despite even he however i if in indeed instead it many "
    "meanwhile moreover most nevertheless nonetheless nor separately similarly since so some "
    "the there these they this though thus under when while yet ";

/* Common words that also occur in names and titles, so a capital first letter does not show that a
 * sentence begins. */
static const char kSmall[] =
    " about across after again against ago also an and another any are around as at avoid away "
    "be because been before below can come could did do during each eight eleven every "
    "everyone everything few fifty find first five for forty four from get give go had has "
    "have having help his how is its itself just keep know last later let like make making "
    "maybe might more much must my never next nine no nobody none not now of often on once "
    "only or other others our out over own perhaps quite rather read really see seven several "
    "she should six somebody something take tell ten than that their then thirty those three "
    "to too toward twelve twenty two until up use usually was we what whatever when where who "
    "whose why will with would write you zero ";

/* More words that also occur in names and titles: nouns, adjectives and verbs. */
static const char kContent[] =
    " account act action add address advice afternoon age air allow animal answer apple apply "
    "apps area article arts attention audience author autumn baby balance ball bank basic "
    "beach beauty bed best better bird birthday blood boat body book box boy bread breakfast "
    "breathe bring brother budget build building business buy call camera card care case cat "
    "cause chance change chapter cheese chicken child children choice class clear click "
    "climate close clothes code coffee cold color common community company compare computer "
    "conclusion contact contents cook cool cost count country course cover creative cut dance "
    "dark data date day days dear death deep design dessert dinner distance document dog "
    "dream dress drive early earth education effort eggs email end energy engine environment "
    "equal essay essential event events evidence example excellent excuse exercise experience "
    "expert extra eye face fact fair family famous far farm fast father favorite fear figure "
    "fill film fine finish fire fish flat focus food foot football form fourth free fresh "
    "friend fruit fun function garden gather general gentle girl glass global goal good "
    "goodbye grand great greetings group guide half hands hard head health healthy heart heat "
    "high history hit hold holiday home homes hope horse hot house human hundred idea income "
    "index info information inside internet island issue job join joy judge jump key kind "
    "kitchen knowledge language languages large law lay lead leave left lemon length less "
    "lesson letter level library life light line list little live living local long look "
    "looks lord lose lot love low luck lunch machine magic mail main major map markets match "
    "material meaning measure meat medium meet member memory men mention message method "
    "middle milk million mind mix mobile modern moment money month moon morning mother motion "
    "mountain mountains move movie multiple music myth name names nation natural nature "
    "network new news nice night normal note notes number ocean offer office oil old open "
    "opinion option orange order organize pack page paint pair paper part party pass past "
    "patients pay peace percent perform person phone photo pick picture place plan plant play "
    "poem point police poor position positive potato power practice present president press "
    "price print prior pro problem product professional program project promise proof protect "
    "proud public purple purpose put question race rain random rate reach reading ready real "
    "reality reason recipe red reference regular relax rent replace reply report request "
    "research respect rest result return review rice rich ride right risk river road rock "
    "role room round row rule safe safety salt sand save say scene school schools science "
    "score sea search season second section sections select sell send sentence serve service "
    "set sex shape share ship shop short show showing side sign silence silver simple single "
    "sister size skin sky small smart snow social society soft software solar solution song "
    "sort sound source south space special specific speech speed spring stand star start "
    "state states step store story stranger street strength stress structure student study "
    "style subject submit success sugar summary summer sun system table tall teach teacher "
    "team technology test text thank thing third thousand ticket time title today tone top "
    "topic total touch tour town traffic train travel traveler treat tree trip true trust "
    "truth type types understanding union unique unit update vacation value version video "
    "view voice walk wall war warm water weather wedding weekend well west wet whales wheel "
    "white whole wild win wind window winter wise woman wood wooden word work works world "
    "year young ";

/* Words that rarely occur in names: a capital first letter means that a sentence begins. */
static const char kOrdinary[] =
    " able above absolutely accept afraid agree almost alone already always animals answers "
    "anyone anything apples arrive articles ask beautiful become begin behind being between "
    "beyond birds bold books boys bright brothers buildings busy calculate calls calm cannot "
    "careful cars cats causes changes cheap check choices choose clean clearly clouds colors "
    "confused consider costs create curious customers cute dancing define delicious describe "
    "details determine different difficult discover does dogs doing dreams drink easy eat "
    "effective either else enjoy enough ensure especially everybody everyday everywhere "
    "exactly examples exciting expect experts explain explore eyes facts fans features feel "
    "feelings figures files flowers fly follow forget forward friendly friends fruits funny "
    "furthermore games gently girls given glad goals groups grow guests habits happiness "
    "happy hate hear heavy hello helpful hence her here hers herself hi highlight him himself "
    "honestly hopefully horses hours houses huge hungry ideas imagine important impossible "
    "include instead instructions interesting into introduce issues jobs kids laugh laughter "
    "leaders learn least leaves legs lemons lessons lets lights likewise listen literally "
    "lots loud lovely lucky meals means meetings members memories minutes miss mistakes "
    "months movies muscles myself near necessary need neither nervous noise nothing notice "
    "numbers objects observe oh ok okay options ordinary original otherwise ours outside "
    "overall pages parents parts patience people perfect personal phones photos pictures "
    "places plans plants players please plenty poems points polite popular possible practical "
    "prepare pretty prices probably problems products programs projects provide questions "
    "quick quickly quiet readers reasons recent reduce refer remain remember repeat respond "
    "results rooms rules run sad sadly same sauce says scared scientists seasons seats "
    "secrets seem sentences separate shoes shops simply sing sit skills sleep slow slowly "
    "smell smile softly solutions someone sometimes songs soon sorry sounds speak spend stars "
    "stay steps stick still stop stories strange strangers strong students stuff such "
    "suddenly suggest summarize support sure surprise sweet swim talk tasks taste teachers "
    "teams tears thanks them themselves therefore things think thousands through throughout "
    "throw times tips tired together tomorrow tonight tools topics toys trains travelers "
    "trees trips truly try turn twice typically understand unfortunately units unknown unless "
    "upon us useful users using valid values various vegetables very visit visitors wait wash "
    "waste watch waves weak wear weird welcome were wherever whether which whichever whom "
    "wide windows wish within without women wonder wonderful words workers worry worse worst "
    "wow writers wrong yeah years yes yesterday your yourself ";

static bool is_among(const char *list, span word) {
    char key[PUNKT_LONGEST + 3];
    if (!word.n || word.n > PUNKT_LONGEST || memchr(word.s, ' ', word.n))
        return false;
    key[0] = ' ';
    memcpy(key + 1, word.s, word.n);
    memcpy(key + word.n + 1, " ", 2);
    return strstr(list, key) != NULL;
}

/* True for words of 6 bytes and more with an ending that names rarely have. */
static bool has_common_ending(span word) {
    static const char *const endings[] = {"ing",  "ed",  "ly",  "tion", "ment",
                                          "ness", "ity", "ize", "ful",  "able"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n = strlen(endings[i]);
        if (word.n >= 6 && memcmp(word.s + word.n - n, endings[i], n) == 0)
            return true;
    }
    return false;
}

unsigned punkt_english(span word) {
    unsigned bits = 0;
    if (is_among(kAbbreviations, word))
        bits |= PUNKT_ABBREVIATION;
    if (is_among(kStarters, word))
        bits |= PUNKT_STARTER | PUNKT_MIDDLE_LOWER | PUNKT_MIDDLE_UPPER;
    if (is_among(kSmall, word) || is_among(kContent, word))
        bits |= PUNKT_MIDDLE_LOWER | PUNKT_MIDDLE_UPPER;
    if (is_among(kOrdinary, word) || has_common_ending(word))
        bits = (bits | PUNKT_MIDDLE_LOWER) & ~(unsigned)PUNKT_MIDDLE_UPPER;
    return bits;
}
