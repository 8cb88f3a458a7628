/**
 * Messages of many tenants in several languages, the same for the same seed. Words are made of each language's syllables and
 * characters, and come as often as words do (Zipf): what a search meets in them is like what it meets in real text.
 */

/** Numbers in [0, 1), by mulberry32. */
export function chanceOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Picks 0 … n - 1, the first most often. */
function zipf(n, exponent) {
  const sums = new Float64Array(n);
  let sum = 0;
  for (let i = 0; i < n; i++) sums[i] = sum += (i + 1) ** -exponent;
  return {
    share: (i) => (i + 1) ** -exponent / sum,
    pick(chance) {
      const wanted = chance() * sum;
      let [low, high] = [0, n - 1];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (sums[middle] < wanted) low = middle + 1;
        else high = middle;
      }
      return low;
    },
  };
}

const words = (text) => text.split(' ');
const of = (list, chance) => list[Math.floor(chance() * list.length)];
const range = (from, to) => Array.from({ length: to - from }, (_, n) => String.fromCodePoint(from + n));

/** Words of two or more syllables; rarer ones are longer. */
const fromSyllables = (onsets, cores, codas) => (rank, chance) => {
  const syllables = 1 + Math.floor(chance() * 2) + (rank > 300 ? 1 : 0) + (rank > 8_000 ? 1 : 0);
  let word = '';
  for (let n = 0; n < syllables; n++) word += of(onsets, chance) + of(cores, chance) + (chance() < 0.45 ? of(codas, chance) : '');
  return word;
};

const languages = {
  en: {
    frequent: words(
      'the to and of a in is it you that for on with this are be not as we have if can but deploy service error at from or so what',
    ),
    make: fromSyllables(
      words('b c d f g h k l m n p r s t v w st tr pr pl ch sh th gr cl br qu'),
      words('a e i o u ea ou ai ee o e i a'),
      words('n r s t l ng nd st ck m p x ll ss rt'),
    ),
  },
  de: {
    frequent: words(
      'der die und in den von zu das mit sich auf für ist im dem nicht ein eine als auch es an werden aus er hat dass sie nach über',
    ),
    make: fromSyllables(
      words('b d f g h k l m n r s t w z sch st tr pr kl br fr zw pf'),
      words('a e i o u ä ö ü ei au ie e e a'),
      words('n r s t l ng nd st ch m ß lt rt cht'),
    ),
  },
  ru: {
    frequent: words('и в не на я что он с как это по но она к у же вы за бы так из мы от для ты мне ещё если нет сервер'),
    make: fromSyllables(
      words('б в г д ж з к л м н п р с т ф х ц ч ш щ ст пр тр вс'),
      words('а е ё и о у ы э ю я о е а и'),
      words('н р с т л м к й в ть сть ш'),
    ),
  },
  ar: {
    frequent: words('في من على إلى أن هذا التي لا ما مع كان هو عن هذه كل قد بين إذا ثم لم أو'),
    make: fromSyllables(
      words('ب ت ج ح خ د ر ز س ش ص ط ع غ ف ق ك ل م ن ه و ي ال مس است'),
      ['', '', 'ا', 'و', 'ي'],
      words('ن ر س ت ل م د ب ة'),
    ),
  },
  zh: {
    spaceless: true,
    frequent: words('的 了 是 我 不 在 有 人 这 他 们 来 到 时 大 地 为 子 你 说 天气 服务 部署 错误 今天'),
    make(rank, chance) {
      const han = this.characters;
      const length = rank < 300 ? 1 : rank < 30_000 ? 2 : 3;
      return Array.from({ length }, () => han[this.dice.pick(chance)]).join('');
    },
    characters: range(0x4e10, 0x4e10 + 3_500),
    dice: zipf(3_500, 0.7),
    stops: words('， 。 ？ ！ 、'),
  },
  ja: {
    spaceless: true,
    frequent: words('の は を に が と で も た て する です ます ない いる ある この その こと 天気 東京 エラー サービス'),
    make(rank, chance) {
      if (chance() < 0.2) return Array.from({ length: 3 + Math.floor(chance() * 3) }, () => of(katakana, chance)).join('');
      const kanji = Array.from({ length: 1 + Math.floor(chance() * 2) }, () => this.characters[this.dice.pick(chance)]).join('');
      return chance() < 0.4 ? kanji + of(hiragana, chance) + (rank > 5_000 ? of(hiragana, chance) : '') : kanji;
    },
    characters: range(0x5200, 0x5200 + 2_200),
    dice: zipf(2_200, 0.7),
    stops: words('、 。 ！'),
  },
};
const hiragana = range(0x3042, 0x3094);
const katakana = range(0x30a2, 0x30f4);
const emoji = words('👍 🦊 🚀 🎉 🤔 👨‍👩‍👧 ❤️ ✅');

/** A language's words, the most frequent first, and texts made of them. */
export function languageOf(name, size = 40_000) {
  const language = languages[name];
  const chance = chanceOf(name.codePointAt(0) * 1_000 + name.codePointAt(1));
  const dice = zipf(size, 1);
  const vocabulary = [...language.frequent];
  const seen = new Set(vocabulary);
  while (vocabulary.length < size) {
    const word = language.make(vocabulary.length, chance);
    if (seen.has(word) && chance() < 0.9) continue;
    seen.add(word);
    vocabulary.push(word);
  }
  return {
    name,
    vocabulary,
    /** About how many of `texts` messages have the word of this rank. */
    rankFor(texts, wanted) {
      const mean = 41;
      let [low, high] = [0, size - 1];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (texts * (1 - (1 - dice.share(middle)) ** mean) > wanted) low = middle + 1;
        else high = middle;
      }
      return low;
    },
    /** 6 to 76 words. */
    text(more) {
      const count = 6 + Math.floor(more() * 71);
      let text = '';
      for (let n = 0; n < count; n++) {
        const word = vocabulary[dice.pick(more)];
        const stop = more();
        if (language.spaceless) text += stop < 0.12 ? word + of(language.stops, more) : word;
        else text += (n > 0 ? ' ' : '') + (stop < 0.08 ? `${word},` : stop < 0.14 ? `${word}.` : word);
      }
      return more() < 0.05 ? `${text} ${of(emoji, more)}` : text;
    },
  };
}

/** Sizes of tenants: the largest has about 13 % of all at 100 tenants. */
export function sizesOf(tenants, messages) {
  const dice = zipf(tenants, 0.83);
  const sizes = Array.from({ length: tenants }, (_, n) => Math.floor(dice.share(n) * messages));
  sizes[0] += messages - sizes.reduce((sum, size) => sum + size, 0);
  return sizes;
}

export const languageNames = Object.keys(languages);
