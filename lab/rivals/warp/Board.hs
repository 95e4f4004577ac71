{-# LANGUAGE OverloadedStrings #-}

-- | Boards as persistent trees behind TVars, and their JSON.
module Board
  ( Boards, Shown (..), Info (..), Message (..)
  , create, edit, json, list, now, parse, shown, write
  ) where

import Control.Concurrent.STM
import Data.Aeson hiding (json)
import Data.Aeson.Encoding (encodingToLazyByteString)
import qualified Data.ByteString.Builder as Builder
import qualified Data.ByteString.Lazy as Lazy
import Data.Foldable (toList)
import qualified Data.Map.Strict as Map
import Data.Sequence (Seq, (|>))
import qualified Data.Sequence as Seq
import Data.Text (Text)
import qualified Data.Text as Text
import Data.Time.Format.ISO8601 (formatShow, iso8601Format)
import Data.Time.Clock (UTCTime (..), diffTimeToPicoseconds, getCurrentTime, picosecondsToDiffTime)

-- | How many messages are on a page.
pageSize :: Int
pageSize = 20

data Message = Message
  { messageId :: !Int
  , messageAuthor, messageTitle, messageText, messageTime :: !Text
  , messageEdited :: !(Maybe Text)
  }

-- | A message with its answers.
data Node = Node !Message !(Seq Node)

data Tree = Tree
  { treeName, treeTitle, treeChanged :: !Text
  , treeVersion, treeLast :: !Int
  , treeTopics :: !(Seq Node)
  }

type Boards = TVar (Map.Map Text (TVar Tree))

-- | What a client says.
data Said = Said { saidAuthor, saidTitle, saidText :: !Text }

data Info = Info { infoName, infoTitle, infoChanged, infoVersion :: !Text, infoTopics :: !Int }

data Shown = Shown { shownBoard :: !Info, shownPages :: !Int, shownMessages :: [(Message, Int)] }

data Receipt = Receipt !Int !Text

instance FromJSON Said where
  parseJSON = withObject "said" $ \it ->
    Said <$> it .:? "author" .!= "" <*> it .: "title" <*> it .:? "text" .!= ""

instance ToJSON Info where
  toJSON = undefined
  toEncoding it = pairs
    ( "name" .= infoName it <> "title" .= infoTitle it <> "about" .= ("" :: Text) <> "topics" .= infoTopics it
    <> "messages" .= infoTopics it <> "changed" .= infoChanged it <> "version" .= infoVersion it )

instance ToJSON Shown where
  toJSON = undefined
  toEncoding it = pairs
    ( "board" .= shownBoard it <> "page" .= (1 :: Int) <> "pages" .= shownPages it
    <> "messages" .= map Listed (shownMessages it) )

newtype Listed = Listed (Message, Int)

instance ToJSON Listed where
  toJSON = undefined
  toEncoding (Listed (it, replies)) = pairs
    ( "id" .= messageId it <> "parent" .= Null <> "state" .= ("said" :: Text) <> "author" .= messageAuthor it
    <> "title" .= messageTitle it <> "text" .= messageText it <> "time" .= messageTime it
    <> "edited" .= messageEdited it <> "replies" .= replies <> "answers" .= replies )

instance ToJSON Receipt where
  toJSON = undefined
  toEncoding (Receipt number version) = pairs ("id" .= number <> "version" .= version)

json :: ToJSON a => a -> Builder.Builder
json = Builder.lazyByteString . encodingToLazyByteString . toEncoding

parse :: Lazy.ByteString -> Maybe Said
parse = decode'

-- | The time of this second as text.
now :: IO Text
now = do
  UTCTime day time <- getCurrentTime
  let second = 1000000000000
      whole = diffTimeToPicoseconds time `div` second * second
  pure $! Text.pack (formatShow iso8601Format (UTCTime day (picosecondsToDiffTime whole)))

list :: Boards -> STM [Info]
list boards = readTVar boards >>= mapM (fmap info . readTVar) . toList

create :: Boards -> Said -> Text -> STM Info
create boards said time = do
  let name = Text.toLower (saidTitle said)
      tree = Tree { treeName = name, treeTitle = saidTitle said, treeChanged = time, treeVersion = 1, treeLast = 0, treeTopics = mempty }
  made <- newTVar tree
  modifyTVar' boards (Map.insert name made)
  pure (info tree)

-- | What a page shows, the newest first.
shown :: Boards -> Text -> STM (Maybe Shown)
shown boards name = readTVar boards >>= traverse (fmap newest . readTVar) . Map.lookup name
  where
    newest tree = Shown
      { shownBoard = info tree
      , shownPages = max 1 ((Seq.length (treeTopics tree) + pageSize - 1) `div` pageSize)
      , shownMessages = [(message, Seq.length answers) | Node message answers <- toList (Seq.reverse (lastOf (treeTopics tree)))]
      }
    lastOf topics = Seq.drop (Seq.length topics - pageSize) topics

write :: Boards -> Text -> Said -> Text -> STM (Maybe Receipt)
write boards name said time = changed boards name change
  where
    change tree = Just (number, commit time tree { treeLast = number, treeTopics = treeTopics tree |> Node message mempty })
      where
        number = treeLast tree + 1
        message = Message number (saidAuthor said) (saidTitle said) (saidText said) time Nothing

edit :: Boards -> Text -> Int -> Said -> Text -> STM (Maybe Receipt)
edit boards name number said time = changed boards name change
  where
    change tree = do
      Node message answers <- Seq.lookup (number - 1) (treeTopics tree)
      let edited = message
            { messageAuthor = saidAuthor said, messageTitle = saidTitle said, messageText = saidText said, messageEdited = Just time }
      pure (number, commit time tree { treeTopics = Seq.update (number - 1) (Node edited answers) (treeTopics tree) })

changed :: Boards -> Text -> (Tree -> Maybe (Int, Tree)) -> STM (Maybe Receipt)
changed boards name change = do
  found <- Map.lookup name <$> readTVar boards
  case found of
    Nothing -> pure Nothing
    Just board -> do
      tree <- readTVar board
      case change tree of
        Nothing -> pure Nothing
        Just (number, next) -> do
          writeTVar board $! next
          pure (Just (Receipt number (version next)))

commit :: Text -> Tree -> Tree
commit time tree = tree { treeVersion = treeVersion tree + 1, treeChanged = time }

info :: Tree -> Info
info tree = Info
  { infoName = treeName tree, infoTitle = treeTitle tree, infoChanged = treeChanged tree, infoVersion = version tree
  , infoTopics = Seq.length (treeTopics tree) }

version :: Tree -> Text
version tree = "1." <> Text.pack (show (treeVersion tree))
