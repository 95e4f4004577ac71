{-# LANGUAGE OverloadedStrings #-}

-- | The page of a board, with every text escaped.
module Page (page) where

import qualified Data.ByteString.Builder as Builder
import qualified Data.ByteString.Builder.Prim as Prim
import Data.Char (ord)
import Data.Text (Text)
import Data.Text.Encoding (encodeUtf8BuilderEscaped)
import Data.Word (Word8)

import Board (Info (..), Message (..), Shown (..))

page :: Shown -> Builder.Builder
page it =
  "<!doctype html><html lang=\"en\"><title>" <> title <> "</title><h1>" <> title <> "</h1><ul>"
    <> foldMap (item . fst) (shownMessages it) <> "</ul></html>"
  where
    title = text (infoTitle (shownBoard it))
    name = text (infoName (shownBoard it))
    item message =
      "<li><h2><a href=\"/b/" <> name <> "/" <> Builder.intDec (messageId message) <> "\">" <> text (messageTitle message)
        <> "</a></h2><p>" <> text (messageText message) <> "</p><p>" <> text (messageAuthor message) <> ", <time datetime=\""
        <> text (messageTime message) <> "\">" <> text (messageTime message) <> "</time></p></li>"

text :: Text -> Builder.Builder
text = encodeUtf8BuilderEscaped escaped

escaped :: Prim.BoundedPrim Word8
escaped =
  Prim.condB (> byte '>') plain
    $ Prim.condB (== byte '<') (fixed ('&', ('l', ('t', ';'))))
    $ Prim.condB (== byte '>') (fixed ('&', ('g', ('t', ';'))))
    $ Prim.condB (== byte '&') (fixed5 ('&', ('a', ('m', ('p', ';')))))
    $ Prim.condB (== byte '"') (fixed5 ('&', ('#', ('3', ('4', ';')))))
    $ Prim.condB (== byte '\'') (fixed5 ('&', ('#', ('3', ('9', ';'))))) plain
  where
    byte = fromIntegral . ord
    plain = Prim.liftFixedToBounded Prim.word8
    char = Prim.char7
    fixed it = Prim.liftFixedToBounded (const it Prim.>$< char Prim.>*< char Prim.>*< char Prim.>*< char)
    fixed5 it = Prim.liftFixedToBounded (const it Prim.>$< char Prim.>*< char Prim.>*< char Prim.>*< char Prim.>*< char)
