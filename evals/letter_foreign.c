/* letter_foreign.c - the entries of the lexicon in other languages: German, Dutch, Swedish, Danish,
 * Norwegian, French, Spanish, Catalan, Portuguese, Italian, Romanian, Polish, Czech, Slovak,
 * Croatian, Serbian, Bulgarian, Russian, Ukrainian, Lithuanian, Hungarian, Finnish, Estonian,
 * Greek, Turkish, Indonesian, Malay, Tagalog, Vietnamese, Swahili, Hausa, Yoruba, Arabic, Hebrew,
 * Persian, Urdu, Hindi, Marathi, Gujarati, Bengali, Tamil, Telugu, Thai, Chinese, Japanese,
 * Korean. */
#include "evals/letter_lexicon.h"

/* clang-format off */
const word_list letter_foreign[] = {
    {WORD_BE, "sia|sea|soit|seja|está|están|estão|estaria|son|são|sono|zijn|olmalıdır|"
              "olmalı|harus"},
    {WORD_CHOOSE,
     "entscheiden|entschieden|entscheide|kies voor|kiezen voor|ga voor|opto por|optaría por|"
     "optaria por|me decanto por|me inclino por|penche pour|pencherais pour|opterais pour|"
     "propendo per|opterei per|scelgo|stawiam na|zvolím|velím"},
    {WORD_SO,
     "bu nedenle|bu yüzden|bundan dolayı|o halde|öyleyse|demek ki|karena itu|maka|"
     "oleh sebab itu|dengan demikian|그래서|그러니까|por eso|en consecuencia|así pues|"
     "por consiguiente|par conséquent|en conclusion|por isso|assim sendo|desta forma|"
     "di conseguenza|perciò|in conclusione|demnach|zusammenfassend|daarom|derhalve|dlatego|"
     "wobec tego|отсюда|стало быть|由此|由此可见|それゆえ|以上より|vì thế|cho nên"},
    {WORD_RIGHT, "bien"},
    {WORD_ANSWER, "voto|mi voto|mon vote"},
    {WORD_FILL, "para"},
    {WORD_BUT, "했지만|지만|했으나|했는데"},
    {WORD_FILL, "voor|por|per|dla"},
    {WORD_CHOOSE | WORD_ANSWER, "应该选|應該選|该选|建议选|只能选|要选|就选|故选|所以选"},
    {WORD_ANSWER,
     "antwort|lösung|antwoord|svar|svaret|réponse|bon choix|respuesta|resposta|risposta|gabarito|"
     "solución|solução|soluzione|otvet|ответ|ответом|відповідь|απάντηση|cevap|cevabı|yanıt|"
     "jawaban|jawabannya|đáp án|câu trả lời|chọn|odpowiedź|odpowiedź to|odpowiedzią jest|jibu|"
     "jawabu|ìdáhùn|idahun|الإجابة|الاجابة|الجواب|إجابة|پاسخ|جواب|উত্তর|উত্তরটি|उत्तर|जवाब|คำตอบ|"
     "ตอบ|答案|答え|正解|正答|回答|解答|結論|결론|정답|답변|답안|답|选择|選擇|选|選|应选|應選|fazit|elección|choix"},
    {WORD_OPTION,
     "antwort|aussage|antwortmöglichkeit|l'option|réponse|choix|proposition|opción|alternativa|"
     "opção|opzione|l'opzione|letra|lettre|lettera|inciso|respuesta|resposta|risposta|вариант|"
     "вариантом|буква|pilihan|opsi|huruf|jawaban|الخيار|الحرف|विकल्प|উত্তর|বিকল্প|उत्तर|ข้อ|"
     "ตัวเลือก|chaguo|herufi|đáp án|phương án|lựa chọn|seçenek|seçeneği|seçeneğidir|şık|şıkkı|"
     "şıkkıdır|harfi|optie|odpowiedź|litera|选项|選項|選択肢|선택지|보기|option|答案|项|項|번"},
    {WORD_RIGHT,
     "zu wählen|richtig|richtige|richtigen|korrekt|korrekte|beste|rätt|correcte|correct|bonne|"
     "juste|exacte|exact|correcta|correcto|correta|correto|certa|certo|corretta|corretto|esatta|"
     "esatto|giusta|giusto|adecuada|apropiada|poprawna|prawidłowa|правильный|правильным|"
     "правильно|верный|верным|верно|верен|правильна|doğru|doğrudur|benar|tepat|sahihi|"
     "lililo sahihi|đúng|đúng nhất|chính xác|tó tọ́|tó tọ̀nà|tọ́|tó pé|الصحيحة|الصحيح|صحيحة|صحيح|"
     "صحیح|درست|सही|সঠিক|ที่ถูกต้อง|ถูกต้อง|ที่ถูก|正确|正確|正しい|最も適切|適切|最适切|最合适|最佳|对的|옳|올바른|올바르|맞|"
     "适切|convient|juiste|juist|onjuist"},
    {WORD_RIGHT | WORD_ANSWER, "正解|정답|richtige antwort|正答"},
    {WORD_FALSE | WORD_WRONG,
     "falsch|falsche|falso|falsa|fausse|faux|incorrecta|incorrecto|incorreta|incorreto|неверно|"
     "неверный|неверен|неверна|неверны|неправильно|неправильный|неправильна|неправилен|"
     "неправильны"},
    {WORD_WRONG,
     "errada|errado|errónea|erróneo|sbagliata|sbagliato|fausse|faux|scheidet|scheiden|entfällt|"
     "weg|fällt|incorrecte|verkeerd|vervalt|yanlış|yanlıştır|elenir|elendi|salah|adalah salah|"
     "sai|خاطئ|خاطئة|غلط|ผิด|odpada|отпадает|отпадают|исключается|исключаются|исключаем|исключён|"
     "éliminé|éliminée|exclu|exclue|écarter|descarta|descartada|esclusa|escludere|scartata|গলত|"
     "ভুল|गलत|不对|不正确|不正確|错|錯|错误|錯誤|间违|間違|間違っている|誤り|誤|を除外|は不適|不符合|不符|被排除|可以排除|排除|틀|틀렸|excluída|"
     "eliminada"},
    {WORD_CHOOSE,
     "dirais|choisirais|prendrais|choisir|retenir|diría|elegiría|escogería|elegir|escoger|"
     "escolheria|escolher|diria|direi|sceglierei|scegliere|würde sagen|wähle|wählen|nehmen|"
     "entscheide mich für|nehme|elijo|escojo|elegimos|escolho|scelgo|choisis|choisissons|"
     "opte pour|retiens|retenons|wybieram|kies|memilih|выбираю|выбираем|kiezen|väljer|我选|我選|選ぶ|"
     "应选择|應選擇|应选|选择|選擇|选|選|chọn|nachagua|seçiyorum|tercih|me quedo con|mi quedo con|fico com|"
     "tippe auf"},
    {WORD_THINK, "denke|glaube|pense|crois|creo|acho|penso|думаю|считаю|düşünüyorum|认为|認為|思う|생각"},
    {WORD_RIGHT, "を選びます|を選ぶ|を選択|を選択します|を選んだ|를 선택합니다|를 선택|을 선택|를 고르겠습니다|를 고릅니다|가 맞습니다"},
    {WORD_FIT,
     "trifft|stimmt|passt|gilt|cumple|encaja|convient|conviene|confère|vale|calza|soddisfa|"
     "satisface|подходит|符合|成立|符合题意|合适|fits"},
    {WORD_LEAVE,
     "bleibt|verbleibt|bleiben|übrig|reste|restent|queda|quedan|resta|restam|rimane|zostaje|"
     "blijft|остаётся|остается|剩下|只剩|只剩下|tersisa|เหลือ|残る|残るのは|남는 것은|남는|kalır|kalıyor"},
    {WORD_BE,
     "ist|sind|lautet|wäre|heißt|est|serait|sont|es|sería|é|seria|è|sarebbe|adalah|yaitu|ialah|"
     "là|jest|ni|ndilo|är|هي|هو|است|है|হল|হলো|হবে|होगा|это|является|は|が|은|는|이|가|应该是|應該是|应为|應為|应是|"
     "是|为|為|คือ|就是|となり|になり|c'est|ce serait|είναι|será|son|bedeutet|entspricht|соответствует|"
     "correspond à|corresponde a|corrisponde a|に対応|对应|對應|stimmt"},
    {WORD_IT | WORD_BE, "c'est|ce serait|es ist|das ist|es la|il s'agit de|это"},
    {WORD_SO,
     "also|daher|somit|folglich|deshalb|damit|donc|ainsi|alors|por tanto|por lo tanto|entonces|"
     "así|portanto|então|logo|assim|quindi|dunque|pertanto|следовательно|итак|значит|"
     "таким образом|поэтому|dus|zatem|więc|jadi|oleh karena itu|vậy|do đó|vì vậy|hivyo|kwa hivyo|"
     "nítorí náà|dolayısıyla|sonuç olarak|لذلك|إذن|अतः|इसलिए|সুতরাং|তাই|ดังนั้น|所以|因此|故|综上|综上所述|"
     "したがって|よって|따라서|그러므로|结论"},
    {WORD_NOT,
     "nicht|keine|kein|weder|niet|geen|inte|pas|n'est pas|n'est|no es|no|non è|non|não é|não|не|"
     "ни|nie|değil|değildir|bukan|không|không phải|si|sio|siyo|ليس|ليست|لا|नहीं|নয়|ไม่|ไม่ใช่|不|"
     "不是|不选|没有|ではな|じゃな|でな|ではない|ではなく|じゃなく|でなく|아니|아닙니다|이 아니|가 아니|이 아니라|δεν|nem|bukanlah|ne... pas"},
    {WORD_OUT,
     "schließe|schließen|ausschließen|élimine|éliminer|éliminons|exclut|exclure|elimina|"
     "eliminamos|descarto|descartamos|descartar|eliminiamo|scarto|escludo|escludiamo|исключаем|"
     "исключить|elenebilir|排除|除外"},
    {WORD_IF,
     "wenn|falls|sofern|si|se|sinon|sonst|si no|senão|altrimenti|если|иначе|jika|nếu|ikiwa|eğer|"
     "إذا|अगर|यदि|যদি|ถ้า|如果|若|もし|만약|dépend|depende|hängt|зависит|selon"},
    {WORD_MAY,
     "könnte|vielleicht|möglicherweise|pourrait|peut-être|podría|quizás|tal vez|poderia|talvez|"
     "potrebbe|forse|возможно|может|mungkin|có thể|labda|belki|olabilir|可能|也许|かもしれ|아마|ربما|شاید|"
     "शायद|হতে পারে|อาจ|misschien|kan"},
    {WORD_OR,
     "oder|ni|ou|o|atau|veya|ya da|au|tabi|lub|of|eller|или|або|либо|或者|或|または|또는|이나|나|か|と|hoặc|"
     "หรือ|أو|یا|या|বা|ή|e|y|et|und|en|och|og|ve|dan|na|и|和|与|與|및|와|과|하고|や|以及|και|và|และ|و|और|এবং"},
    {WORD_BUT,
     "aber|doch|jedoch|sondern|hingegen|während|obwohl|mais|cependant|tandis|alors que|bien que|"
     "pero|sino|sin embargo|aunque|mientras|mas|porém|embora|enquanto|ma|bensì|mentre|sebbene|но|"
     "а|однако|хотя|tetapi|namun|nhưng|lakini|ama|ancak|fakat|لكن|बल्कि|लेकिन|কিন্তু|แต่|但是|但|而|"
     "而不是|然而|しかし|하지만|그러나|ale"},
    {WORD_OTHERS,
     "viele|manche|beaucoup|certains|muchos|algunos|muitos|alguns|molti|alcuni|многие|некоторые|"
     "有人|很多人|許多人|学生"},
    {WORD_ONLY,
     "nur|allein|einzig|seule|seul|plus que|solo|sólo|solamente|únicamente|única|único|apenas|só|"
     "somente|soltanto|tylko|alleen|только|лишь|hanya|chỉ|只|只有|のみ|だけ|만|yalnızca|sadece|केवल|শুধু"},
    {WORD_IT,
     "das|es|dies|ça|cela|ce|esto|eso|isso|isto|questo|ciò|это|ini|itu|đó|这|這|これ|それ|이것|bu|هذا|"
     "ذلك|यह|এটি"},
    {WORD_I,
     "il faut|on doit|hay que|bisogna|devemos|man muss|man sollte|ich|wir|je|j'|nous|yo|nosotros|"
     "eu|nós|io|noi|я|мы|saya|kita|tôi|ben|biz|我|我们|我們|私|저는|나는|أنا|मैं|আমি|on|ik|wij|mijn|meine|"
     "ma|mi|minha|mia|mein|moja|mój|mon|benim|मेरा|আমার|私の|我的"},
    {WORD_FIRST,
     "zunächst|zuerst|anfangs|d'abord|au début|al principio|inicialmente|inizialmente|сначала|最初|"
     "一开始|처음|ban đầu|awalnya|önce|başta|primeramente"},
    {WORD_WAIT,
     "moment|halt|attends|espera|espere|aspetta|подожди|подождите|tunggu|khoan|等等|不对|待って|잠깐|잠깐만|"
     "korrektur|correction|corrección|correção|correzione"},
    {WORD_WHY,
     "weil|da|denn|parce que|puisque|porque|ya que|pues|pois|já que|perché|poiché|так как|"
     "потому что|поскольку|karena|vì|bởi vì|kwa sababu|çünkü|için|olduğu için|لأن|क्योंकि|কারণ|"
     "เพราะ|因为|因為|由于|なぜなら|ので|なので|때문|because|ponieważ|omdat|eftersom"},
    {WORD_FILL,
     "die|der|das|den|la|el|le|l'|o|os|as|il|lo|un|une|una|uma|eine|ein|de|het|l'option|"
     "l'opzione|под|под буквой|eindeutig|claramente|klar|noch|plus|que|qui|la seule|final|finale|"
     "cuối cùng|yang|paling|akhir|สุดท้าย|náà|lililo|的|です|である|だ|となります|になります|입니다|이다|다|합니다|よ|ね|了|下|"
     "definitiv|definitive|definitiva|definitivo|النهائية|frage|question|pregunta|über|pour|"
     "cette|esta|本题|故本题|最终|该|dir|dır|dur|nhé|ạ|जो|तो|হচ্ছে|项|項|也|就|来|其中|ten|ta|это|т.е.|أن|एक|en|"
     "der frage|auf diese frage|na|bei|unter|von|vom|zur|zum|du|della|do|da|do que|most|mest|für|"
     "alle"},
    {WORD_ANSWER,
     "odpověď|odpoveď|válasz|megoldás|răspuns|răspunsul|raspuns|raspunsul|vastaus|vastaukseni|"
     "ratkaisu|vastus|svaret|svar|løsning|løsningen|odgovor|rješenje|одговор|отговор|отговорът|"
     "resposta|atsakymas|sagot|kasagutan|תשובה|התשובה|پاسخ|جواب|جواب یہ|பதில்|விடை|సమాధానం|జవాబు|"
     "उत्तर|જવાબ|amsa|amsar|jawapan|ответът|απάντηση"},
    {WORD_OPTION,
     "možnost|možnosť|variantu|varianta|varianty|válasz|lehetőség|opció|opțiunea|optiunea|litera|"
     "vaihtoehto|vastausvaihtoehto|variant|valik|mulighed|svarmulighed|alternativ|svaralternativ|"
     "alternativet|opcija|mogućnost|опција|вариант|lletra|variantas|opsyon|titik|pagpipilian|"
     "אפשרות|תשובה|האפשרות|گزینه|گزینهٔ|گزینه‌ی|آپشن|விருப்பம்|தெரிவு|ఎంపిక|ఐచ్ఛికం|पर्याय|"
     "વિકલ્પ|zaɓi|jawapan|pilihan|επιλογή|svarsalternativ|variante"},
    {WORD_RIGHT,
     "správná|správný|správne|správna|správně|helyes|jó|corect|corectă|corecta|corectul|oikea|"
     "oikein|õige|rigtig|rigtige|korrekt|korrekte|riktig|riktige|rett|rette|točan|točna|tačan|"
     "tačna|ispravan|ispravna|тачан|исправан|верен|верният|правилен|правилният|correcta|correcte|"
     "teisingas|tama|tamang|wasto|הנכונה|נכונה|נכון|صحیح|درست|درست ہے|சரியான|సరైన|योग्य|बरोबर|"
     "સાચો|daidai|betul|σωστή|σωστό|beste"},
    {WORD_BE,
     "je|jest|este|er|är|és|jesu|је|е|yra|ay|ang|הוא|היא|است|می‌باشد|ہے|ஆகும்|అవుతుంది|आहे|છે|"
     "ialah|είναι|tehát"},
    {WORD_SO,
     "proto|tedy|takže|tudíž|tehát|ezért|így|deci|așadar|prin urmare|astfel|joten|näin ollen|"
     "seega|derfor|altså|dakle|stoga|zato|дакле|следователно|per tant|doncs|todėl|kaya|"
     "samakatuwid|לכן|אם כן|بنابراین|پس|لہذا|எனவே|కాబట్టి|म्हणून|તેથી|don haka|άρα|επομένως|"
     "därför|alltså"},
    {WORD_NOT,
     "není|nie je|nem|nu|nu este|ei|ei ole|ikke|ikkje|nije|није|не е|no és|nėra|hindi|לא|אינה|"
     "אינו|نیست|نہیں|இல்லை|కాదు|नाही|નથી|bukan|δεν|inte|nincs"},
    {WORD_WRONG,
     "špatně|nesprávná|nesprávně|chybná|nevyhovuje|hibás|helytelen|rossz|greșit|greșită|gresita|"
     "incorect|incorectă|väärä|väärin|vale|forkert|feil|galt|pogrešan|pogrešna|netočan|netočna|"
     "погрешан|грешен|incorrecta|neteisingas|mali|שגויה|שגוי|לא נכונה|نادرست|غلط|தவறானது|తప్పు|"
     "चूक|ખોટો|kuskure|λάθος|λανθασμένη"},
    {WORD_FILL, "az|că|cea|cel|tedy|ang|ng|sa|na|det|den|og|je to|að|הזו|ה|که|గా|ही|ο|η|το"},
    {WORD_BUT,
     "ale|však|azonban|dar|însă|mutta|kuid|ali|али|но|però|pero|ngunit|אבל|اما|لیکن|ஆனால்|కానీ|"
     "पण|પણ|amma|αλλά"},
    {WORD_MAY,
     "možná|talán|poate|ehkä|võib|måske|kanskje|možda|можда|може би|potser|galbūt|baka|siguro|"
     "אולי|شاید|ஒருவேళ|బహుశా|कदाचित|કદાચ|ίσως|kanske|mungkin"},
    {WORD_OR,
     "nebo|alebo|vagy|sau|või|eller|ili|или|arba|או|یا|அல்லது|లేదా|किंवा|અથવા|és|și|og|ו|و|اور|"
     "மற்றும்|మరియు|आणि|અને|και|samt"},
    {WORD_IF,
     "pokud|jestli|dacă|hvis|dersom|ako|ако|jei|kung|אם|اگر|என்றால்|ఒకవేళ|जर|જો|idan|εάν|αν"},
    {WORD_ONLY,
     "pouze|csak|doar|numai|vain|ainult|bare|samo|само|només|tik|lamang|רק|فقط|صرف|மட்டுமே|"
     "మాత్రమే|फक्त|માત્ર|kawai|μόνο|endast|bara"},
    {WORD_CHOOSE,
     "volím|vybírám|választom|valitsen|valin|vælger|velger|biram|бирам|избирам|renkuosi|"
     "pinipili ko|בוחר|انتخاب می‌کنم|επιλέγω"},
};
/* clang-format on */

const size_t letter_n_foreign = sizeof letter_foreign / sizeof *letter_foreign;
