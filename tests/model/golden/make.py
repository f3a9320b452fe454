#!/usr/bin/env python3
"""Writes what corpus.txt becomes in the reference tokenizers.

usage: pip install tokenizers==0.23.3 sentencepiece protobuf gguf; make.py MODELS

  NAME.ids   a line per line of the corpus: ids with special tokens parsed, '|', ids without; no BOS
  pre.cuts   per pre-tokenizer "= name" and a line per line of the corpus: bytes of each word

Vocabularies come from MODELS/NAME.gguf. Byte-level BPE is Hugging Face's tokenizers, SPM is SentencePiece itself. A corpus
line is UTF-8 with %XX for bytes that would not be seen. In SentencePiece a U+2581 in the text is a space; the GGUF form of
the vocabulary keeps apart the spaces of user-defined tokens, so lines with that character are not compared there ("-")."""
import sys
import urllib.parse

import gguf
import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers

CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = r'[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]', r'[\p{Ll}\p{Lm}\p{Lo}\p{M}]'
END = r'|\s*[\r\n]+|\s+(?!\S)|\s+'
CASED = (rf'[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+%s|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*%s|\p{{N}}%s'
         r'| ?[^\s\p{L}\p{N}]+[\r\n/]*' + END)
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
STOPS = r' ?[^(\s|.,!?…。，、।۔،)]+'
CJK = '[一-龥ࠀ-一가-퟿]+'
# Each is a list of expressions that cut one after the other: from the tokenizer.json of the models of that name.
PRE = {
    'gpt-2':      [GPT2],
    'llama-bpe':  [CONTRACTION + r'|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*' + END],
    'qwen2':      [CONTRACTION + r'|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*' + END],
    'qwen35':     [CONTRACTION + r'|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*' + END],
    'bailingmoe': [r"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*"
                   r'|\s*[\r\n]|\s+(?!\S)|\s+'],
    'seed-coder': [CONTRACTION + r'|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+' + END],
    'gpt-4o':     [CASED % (CONTRACTION + '?', CONTRACTION + '?', '{1,3}')],
    'tekken':     [CASED % ('', '', '')],
    'smollm':     [r'\p{N}', GPT2],
    'default':    [r'[\p{P}\$\+<=>\^~\|]+', GPT2, r'\p{N}+', '[0-9][0-9][0-9]'],
    'falcon':     [r'[\p{P}\$\+<=>\^~\|`]+', GPT2, '[0-9][0-9][0-9]'],
    'bloom':      [STOPS],
    'viking':     [STOPS, r'\p{N}'],
    'deepseek-coder': [r'[\r\n]', r'\s?\p{L}+', r'\s?\p{P}+', CJK, r'\p{N}'],
    'deepseek-v3': [r'\p{N}{1,3}', '[一-龥぀-ゟ゠-ヿ]+',
                    r'[!"#$%&\'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+'
                    r'| ?[\p{P}\p{S}]+[\r\n]*' + END],
}


def splitter(expressions):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(e), 'isolated') for e in expressions])


def vocabulary(path):
    fields = gguf.GGUFReader(path).fields
    read = lambda key: [fields['tokenizer.ggml.' + key].parts[i] for i in fields['tokenizer.ggml.' + key].data]
    return read, [bytes(t).decode() for t in read('tokens')], [int(t[0]) for t in read('token_type')]


def byte_level(path, pre):
    read, texts, types = vocabulary(path)
    merges = [tuple(bytes(m).decode().split(' ')) for m in read('merges')]
    plain = Tokenizer(models.BPE({t: i for i, t in enumerate(texts)}, merges))
    plain.pre_tokenizer = pre_tokenizers.Sequence([splitter(PRE[pre]),
                                                   pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    special = Tokenizer.from_str(plain.to_str())
    special.add_special_tokens([AddedToken(t, special=True, normalized=False) for t, k in zip(texts, types) if k == 3])
    return [lambda s, t=t: t.encode(s, add_special_tokens=False).ids for t in (special, plain)]


def sentence_piece(path):
    """Control tokens are never found in text by SentencePiece; to parse them they are made user-defined ones."""
    read, texts, types = vocabulary(path)
    scores = [float(s[0]) for s in read('scores')]
    encoders = []
    for parse in True, False:
        model = sentencepiece_model_pb2.ModelProto()
        for text, kind, score in zip(texts, types, scores):
            kind = 2 if text == '<unk>' else 4 if parse and kind == 3 else kind
            model.pieces.add(piece=text.replace(' ', '▁'), score=score, type=kind)
        model.trainer_spec.model_type, model.trainer_spec.byte_fallback = 2, True
        model.trainer_spec.unk_id = texts.index('<unk>')
        model.normalizer_spec.name, model.normalizer_spec.add_dummy_prefix = 'identity', False
        model.normalizer_spec.remove_extra_whitespaces = False
        processor = sentencepiece.SentencePieceProcessor()
        processor.LoadFromSerializedProto(model.SerializeToString())
        encoders.append(processor.encode)
    return encoders


def write_ids(name, encoders, corpus, skip=None):
    with open(name + '.ids', 'w') as out:
        for text in corpus:
            out.write('-\n' if skip and skip in text else '|'.join(' '.join(map(str, e(text))) for e in encoders) + '\n')


def main():
    models_dir = sys.argv[1]
    corpus = [urllib.parse.unquote(line.rstrip('\n'), errors='strict') for line in open('corpus.txt')]
    write_ids('smollm2-135m', byte_level(models_dir + '/smollm2-135m.gguf', 'smollm'), corpus)
    write_ids('gemma3-270m', sentence_piece(models_dir + '/gemma3-270m.gguf'), corpus, '▁')
    with open('pre.cuts', 'w') as out:
        for name, expressions in PRE.items():
            out.write(f'= {name}\n')
            cut = splitter(expressions)
            for text in corpus:
                out.write(' '.join(str(len(w.encode())) for w, _ in cut.pre_tokenize_str(text)) + '\n')


main()
