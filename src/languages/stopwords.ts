const parse = (words: string): ReadonlySet<string> => new Set(words.split(/\s+/))

/** Words too common to distinguish texts, in lower case and without accents, by ISO 639-1 code. */
export const stopwordsByLanguage = {
  de: parse(`ab aber alle allem allen aller alles als also am an ander andere anderen anderer anderes ans auch auf aus
    bei beim bin bis bist bitte da dabei dafur damit danach dann daran darauf daraus darin das dass daß dazu dein deine
    deinem deinen deiner dem den denen denn der deren des dessen dich die dies diese diesem diesen dieser dieses dir doch
    dort du durch ein eine einem einen einer eines einmal er es etwas euch euer eure eurem euren eurer fur gab ganz geht
    gerade gern gerne gibt habe haben habt hast hat hatte hatten hattest hier hin ich ihm ihn ihnen ihr ihre ihrem ihren
    ihrer im immer in ins ist ja jede jedem jeden jeder jedes jetzt kann kannst kein keine keinem keinen keiner konnen
    konnte konnten mal man manche mehr mein meine meinem meinen meiner mich mir mit mochte muss musst mussen musste mußte
    nach nein nicht nichts noch nun nur ob oder ohne schon sehr sei seid sein seine seinem seinen seiner seit sich sie
    sind so solche soll sollen sollte sollten sondern sonst uber um und uns unser unsere unserem unseren unserer unter
    viel viele vom von vor wann war waren warst warum was weil welche welchem welchen welcher welches wem wen wenn wer
    werde werden wessen wie wieder will wir wird wirst wo woher wohin wollen wollte wollten worden worum worin worauf
    womit wurde wurden wofur zu zum zur zwar zwischen`),
  es: parse(`a adonde ahi al algo alguien algun alguna algunas alguno algunos alli ambos ante antes aquel aquella aquellas
    aquello aquellos aqui asi aun aunque bien cada casi como con contra cosa cosas cual cuales cualquier cuando cuanta
    cuantas cuanto cuantos cuya cuyo de del desde despues donde dos durante e el ella ellas ellos en entonces entre era
    erais eran eras eres es esa esas ese eso esos esta estaba estaban estado estamos estan estar estas este esto estos
    estoy estuve estuvo fue fueron fui ha habia habian haber hace hacer hacia han has hasta hay he hemos hizo hola la las
    le les lo los mas me mi mia mias mio mios mis mismo misma mucha muchas mucho muchos muy nada ni ningun ninguna no nos
    nosotras nosotros nuestra nuestras nuestro nuestros o os otra otras otro otros para pero poco por porque pues puede
    pueden puedo que quien quienes se sea sean ser si sido siempre sin sobre sois solo somos son soy su sus suya suyo
    tal tambien tampoco tan tanto te tengo tener tenia tiene tienen tiempo toda todas todo todos tu tus tuvo tuya tuyo
    un una unas uno unos usted ustedes va vamos van vosotros voy vuestra vuestro y ya yo`),
  fr: parse(`a ai aie aient ainsi alors apres as au aucun aucune aujourd aura aurais aurait aussi autre autres aux avaient
    avais avait avant avec avez avions avoir avons ayant beaucoup bien c ca car ce ceci cela celle celles celui ces cet
    cette ceux chaque chez ci combien comme comment d dans de deja depuis des donc dont du elle elles en encore entre es
    est et etaient etais etait etant ete etes etre eu eux fait faire fois font fut furent ici il ils j je jusqu l la
    laquelle le lequel les lesquelles lesquels leur leurs lors lorsque lui m ma mais me meme memes mes moi moins mon n ne
    ni non nos notre nous on ont ou oui par parce pas pendant peu peut peuvent peux plus pour pourquoi pourrait puis
    qu quand que quel quelle quelles quels quelque quelques qui quoi s sa sans se sera serait ses si sien sienne soi
    soit sommes son sont sous suis sur t ta te tel telle tes toi ton toujours tous tout toute toutes tres trop tu un une
    va vers voici voila vont vos votre vous y`),
  nl: parse(`aan achter al alle alleen alles als altijd andere anders af ben bent bij bijna daar daarna dan dat de deze die
    dit doch doe doen door dus een eens eerst elk elke en enkele er erg even ga gaan gaat ge geen geweest haar had hadden
    heb hebben hebt heeft hem hen het hier hij hoe hoeveel hun iemand iets ik in is ja je jij jou jouw jullie kan kon
    konden kun kunnen kunt laten maar me mee meer mij mijn moest moet moeten mocht na naar net niet niets nog nooit nou
    nu of om omdat onder ons onze ook op over sinds steeds te tegen ten ter terwijl tijdens toch toen tot tussen u uit
    uw van vanaf veel voor vooral waar waarin waarom waarop waarvoor wanneer want waren was wat we wel welk welke werd
    werden wie wij wil wilde willen worden wordt zal ze zei zelf zich zij zijn zo zoals zonder zou zouden zullen`),
  pt: parse(`a ainda agora ai algo alguem algum alguma algumas alguns ali ambos ante antes ao aonde aos apenas apos aquela
    aquelas aquele aqueles aqui aquilo as assim ate bem cada coisa coisas com como contra cuja cujo da dai daquele das de
    dela delas dele deles depois desde dessa desse desta deste disso disto do dois dos duas durante e ela elas ele eles em
    embora enquanto entao entre era eram essa essas esse esses esta estamos estao estar estas estava estavam este esteja
    estes esteve estou eu faz fazer foi fomos for fora foram fosse fui ha havia isso isto ja la lhe lhes lo logo mais mas
    me mesma mesmo meu meus mim minha minhas muita muitas muito muitos na nada nao nas nem nenhum nenhuma nessa nesse
    nesta neste ninguem no nos nossa nossas nosso nossos num numa o onde ora os ou outra outras outro outros para pela
    pelas pelo pelos per pode podem poder pois por porem porque pouco pra qual quais qualquer quando quanta quantas quanto
    quantos que quem se seja sem sempre sendo ser sera seu seus si sido so sob sobre sou sua suas tal tambem tao te tem
    temos tenho ter teu teus teve tinha tinham tive toda todas todo todos tu tua tuas tudo um uma umas uns vai vamos vao
    voce voces vos vou`),
} as const
